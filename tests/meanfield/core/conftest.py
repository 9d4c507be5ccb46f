"""Settings of JAX for games and their derivatives, most of whose seconds are those of compiling."""

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def programs_compiled_in_half_the_time():
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
