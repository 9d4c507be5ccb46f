"""The reason why some releases of JAX are excluded in pyproject.toml."""

import jax
import jax.numpy as jnp
import numpy as np

import meanfield
from meanfield import core


def test_jit_and_eager_agree_on_a_batched_drift():
    """JAX 0.10.2 was seen to sum wrongly where a vmapped mat-vec with more than 33,000 rows feeds a reduction.

    Not on every processor: with AVX-512 on an AMD EPYC it passes this test.
    """
    space = meanfield.MemorySpace(2, 5)
    rng = np.random.default_rng(0)
    n_policies = 33_000 // space.n_states + 2
    q = jnp.asarray(rng.dirichlet(np.ones(2), size=(n_policies, space.n_states)))
    x = jnp.asarray(rng.dirichlet(np.ones(space.n_states), size=n_policies))
    assert x.size > 33_000
    batched = jax.vmap(lambda x, q: core.drift(core.WordGame(q), x))
    said = np.einsum("ni,nia,nb->niab", x, q, np.einsum("ni,nib->nb", x, q))
    expected = -np.array(x)
    for own, partner in np.ndindex(2, 2):
        np.add.at(expected, (slice(None), space.successors() + 2 * own + partner), said[:, :, own, partner])
    np.testing.assert_allclose(jax.jit(batched)(x, q), expected, atol=1e-15)
    np.testing.assert_allclose(batched(x, q), expected, atol=1e-15)


def test_jit_and_eager_agree_on_many_rows():
    rng = np.random.default_rng(1)
    rows = 40_000
    x, q = jnp.asarray(rng.random((3, rows))), jnp.asarray(rng.random((3, rows, 2)))

    def share(x, q):
        said = x @ q
        return said / said.sum()

    expected = np.stack([share(np.asarray(a), np.asarray(b)) for a, b in zip(x, q, strict=True)])
    np.testing.assert_allclose(jax.jit(jax.vmap(share))(x, q), expected, rtol=1e-12)
