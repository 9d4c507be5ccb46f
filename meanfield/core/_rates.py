"""Rate equation, linearisation and noise of any game: derivatives of its Hamiltonian.

All functions take a `Game` and compositions x in its shape, and compose with `jax.jit`, `jax.vmap` and `jax.grad`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from meanfield.core._game import Array, Flow, Game, WordGame, game_of, one_program
from meanfield.core._space import MemorySpace


@one_program
def drift(game: Flow, x: Float[Array, ...]) -> Float[Array, ...]:
    """The right-hand side of the rate equation, F(x) = ∂H/∂p at p = 0; it sums to 0 over each conserved class.

    Source: for the naming game dx_k/dt = -x_k + Σ_ij x_i x_j P_k(i, j), [004] Eq. 1.

    Examples
    --------
    >>> from meanfield import core
    >>> q = np.array([0.6, 0.9, 0.5, 0.5, 0.1])
    >>> game = core.WordGame(np.stack([q, 1 - q], axis=-1))
    >>> print(np.asarray(core.drift(game, core.empty_memories(game))).round(2))  # empty, A/A, A/B, B/A, B/B
    [-1.    0.36  0.24  0.24  0.16]
    """
    return game.drift(x)


def jacobian_product(
    game: Flow, x: Float[Array, ...], v: Float[Array, ...], *, transpose: bool = False
) -> Float[Array, ...]:
    """J v with J = ∂F/∂x at x, or Jᵀv; for the naming game [004] Eq. 38 on perturbations that sum to 0.

    Examples
    --------
    >>> from meanfield import core
    >>> q = np.array([0.6, 0.9, 0.5, 0.5, 0.1])
    >>> game = core.WordGame(np.stack([q, 1 - q], axis=-1))
    >>> v = np.array([0.0, 1.0, 0.0, 0.0, -1.0])
    >>> print(np.asarray(core.jacobian_product(game, core.empty_memories(game), v)).round(2))
    [ 0.   -0.04 -0.16 -0.16  0.36]
    """
    return (_transposed if transpose else _along)(game, x, v)


@one_program
def _along(game: Flow, x: Float[Array, ...], v: Float[Array, ...]) -> Float[Array, ...]:
    return jax.jvp(game.drift, (x,), (v,))[1]


@one_program
def _transposed(game: Flow, x: Float[Array, ...], v: Float[Array, ...]) -> Float[Array, ...]:
    return jax.vjp(game.drift, x)[1](v)[0]


@one_program
def noise_product(game: Game, x: Float[Array, ...], w: Float[Array, ...]) -> Float[Array, ...]:
    """D w with D = ∂²H/∂p² at p = 0: the fractions of N agents diffuse with the covariance D/N per unit of time.

    Examples
    --------
    >>> from meanfield import core
    >>> q = np.array([0.6, 0.9, 0.5, 0.5, 0.1])
    >>> game = core.WordGame(np.stack([q, 1 - q], axis=-1))
    >>> w = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    >>> print(np.asarray(core.noise_product(game, core.empty_memories(game), w)).round(2))
    [ 2.   -0.72 -0.48 -0.48 -0.32]
    """

    def slope(p: Float[Array, ...]) -> Float[Array, ...]:
        return jax.grad(game.hamiltonian, argnums=1)(x, p)

    return jax.jvp(slope, (jnp.zeros_like(x),), (w,))[1]


def higher_derivatives(
    arrays: tuple[Any, ...], x: Float[Array, " states"], basis: Float[Array, "states d"]
) -> tuple[Float[Array, "d d d"], Float[Array, "d d d d"]]:
    """Second and third derivatives of the drift at x in an orthonormal basis; `arrays` as in `game_of`."""
    game = game_of(arrays)

    def along(c: Float[Array, " d"]) -> Float[Array, " d"]:
        return basis.T @ drift(game, x + basis @ c)

    second = jax.jacfwd(jax.jacfwd(along))
    at = jnp.zeros(basis.shape[1], basis.dtype)
    return second(at), jax.jacfwd(second)(at)


@one_program
def curvature(game: Game, x: Float[Array, ...], factors: Float[Array, "rank ..."]) -> Float[Array, ...]:
    """½ F''[C] for a covariance C = Σ_r f_r f_rᵀ, given by its `factors` f: what fluctuations add to the mean drift.

    Examples
    --------
    >>> from meanfield import core
    >>> q = np.array([0.6, 0.9, 0.5, 0.5, 0.1])
    >>> game = core.WordGame(np.stack([q, 1 - q], axis=-1))
    >>> f = np.array([[0.0, 1.0, 0.0, 0.0, -1.0]])
    >>> print(np.asarray(core.curvature(game, core.empty_memories(game), f)).round(2))
    [ 0.    0.64 -0.64 -0.64  0.64]
    """

    def second(f: Float[Array, ...]) -> Float[Array, ...]:
        return jax.jvp(lambda x: jacobian_product(game, x, f), (x,), (f,))[1]

    return jax.vmap(second)(factors).sum(0) / 2


@one_program
def reaction_tensor(game: WordGame) -> Float[Array, "states states states"]:
    """The dense reaction tensor P[k, i, j] = P_k(i, j) of one species, for small state spaces: S³ numbers.

    P_k(i, j) = Σ_ab q_a(i) q_b(j) [k = Γ(i, a, b)] is the probability that an agent in state i goes to state k on
    meeting one in state j. ValueError if agents meet in groups. Source: [004] Eq. 16, whose last case reads
    (1 - q(i))(1 - q(j)).

    Examples
    --------
    >>> from meanfield import core
    >>> q = np.array([0.6, 0.9, 0.5, 0.5, 0.1])
    >>> game = core.WordGame(np.stack([q, 1 - q], axis=-1))
    >>> print(np.asarray(core.reaction_tensor(game)[:, 0, 0]).round(2))
    [0.   0.36 0.24 0.24 0.16]
    """
    if game.groups is not None:
        raise ValueError("game has groups: expected pairs")
    n_states, n_words = game.q.shape
    digits = jnp.arange(n_words**2).reshape(n_words, n_words)
    to = MemorySpace.from_sizes(n_states, n_words).successors()[:, None, None] + digits
    joint = jnp.einsum("ia,jb->iabj", game.q, game.q)
    tensor = jnp.zeros((n_states, n_states, n_states), game.q.dtype)
    i = jnp.arange(n_states)[:, None, None]
    return tensor.at[to, i].add(joint)
