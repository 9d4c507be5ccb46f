"""The reason why some releases of JAX are excluded in pyproject.toml."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanfield import core

FUNCTIONS = {
    "drift": lambda q, x: core.drift(core.WordGame(q), x),
    "of two species": lambda q, x: core.drift(
        core.WordGame(jnp.stack([q, q[::-1]]), jnp.array([0.3, 0.7])), jnp.stack([0.3 * x, 0.7 * x[::-1]])
    ),
    "response": lambda q, x: core.response(core.WordGame(q), x[:2] / x[:2].sum()),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_large_batches_are_made_of_small_ones(function):
    """XLA fuses products of matrices in large batches on CPUs: wrongly in JAX 0.10.2 to 0.11.2, not on every processor.

    There this failed for the drift and in two species while the Hamiltonian was a product of matrices.
    """
    rng = np.random.default_rng(0)
    rows, part = 10_000, 100
    q, x = rng.dirichlet(np.ones(2), size=(rows, 21)), rng.dirichlet(np.ones(21), size=rows)
    program = jax.jit(jax.vmap(FUNCTIONS[function]))
    parts = [program(q[i : i + part], x[i : i + part]) for i in range(0, rows, part)]
    np.testing.assert_allclose(program(q, x), np.concatenate(parts), rtol=1e-12, atol=1e-14)


def test_jit_and_eager_agree_on_many_rows():
    rng = np.random.default_rng(1)
    rows = 40_000
    x, q = jnp.asarray(rng.random((3, rows))), jnp.asarray(rng.random((3, rows, 2)))

    def share(x, q):
        said = x @ q
        return said / said.sum()

    expected = np.stack([share(np.asarray(a), np.asarray(b)) for a, b in zip(x, q, strict=True)])
    np.testing.assert_allclose(jax.jit(jax.vmap(share))(x, q), expected, rtol=1e-12)
