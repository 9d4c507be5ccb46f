"""The response of agents to partners who say words with fixed probabilities Q, as differentiable functions.

Given Q an agent is a Markov chain on its memories. Full memories are a flow (the H - 1 interactions kept and the word
just said) and the word heard, so that the stationary distribution is f(flow) Q(heard), where f is the
stationary distribution of the chain of flows, with W^{2H-1} states. A composition x is a fixed point exactly where
x = p(Q) and Q = F(Q).
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Float

from meanfield.core._game import Array, WordGame
from meanfield.core._space import MemorySpace

BLOCK = 64  # states eliminated one by one; larger chains are eliminated by blocks, with products of matrices


@jax.custom_jvp
def stationary(chain: Float[Array, "n n"]) -> Float[Array, " n"]:
    """The stationary distribution of a chain with one closed class, each entry to full relative accuracy.

    States are eliminated without subtraction (Grassmann, Taksar and Heyman, Operations Research 33, 1107 (1985)): a
    state is left at the sum of the other entries of its row, so diagonals are not read. The derivative solves the
    Poisson equation dπ (1 - A) = π dA. A chain with several closed classes has many stationary distributions;
    this is one.
    """
    n = chain.shape[0]
    if n <= BLOCK:
        return _eliminated(chain)
    m = n // 2
    inside, outwards = chain[m:, m:], chain[m:, :m]
    through = chain[:m, m:] @ _resolvent(inside, outwards.sum(1))
    first = stationary(chain[:m, :m] + through @ outwards)
    law = jnp.concatenate([first, first @ through])
    return law / law.sum()


@stationary.defjvp
def _stationary_jvp(primals: tuple, tangents: tuple) -> tuple:
    (chain,), (change,) = primals, tangents
    law = stationary(chain)
    source = law @ change - law * change.sum(1)  # rows of a chain sum to 1, whatever the diagonal holds
    # Visits before the commonest state is reached; without LU, whose batches XLA may not finish in a loop on two cores
    first = jnp.argmax(law)
    back = (jnp.arange(len(law)) - first) % len(law)
    turned = jnp.roll(chain, (-first, -first), (0, 1))
    visits = jnp.roll(source, -first)[1:] @ _resolvent(turned[1:, 1:], turned[1:, 0])
    moved = jnp.concatenate([jnp.zeros(1, law.dtype), visits])[back]
    return law, moved - law * moved.sum()


def _nothing(chain: Float[Array, "n n"]) -> float:
    """A leak for states that are never left directly, and so hold all the weight: it avoids a division by zero."""
    return 1e18 * float(jnp.finfo(chain.dtype).tiny)


def _eliminated(chain: Float[Array, "n n"]) -> Float[Array, " n"]:
    n = chain.shape[0]
    before = jnp.arange(n)

    def eliminate(step, state):
        chain, leaves = state
        k = n - 1 - step
        row = jnp.where(before < k, chain[k], 0.0)
        total = jnp.maximum(row.sum(), _nothing(chain))
        column = jnp.where(before < k, chain[:, k], 0.0) / total
        return chain + column[:, None] * row, leaves.at[k].set(total)

    chain, leaves = lax.fori_loop(0, n - 1, eliminate, (chain, jnp.ones(n, chain.dtype)))

    def restore(k, law):
        weight = law @ jnp.where(before < k, chain[:, k], 0.0) / leaves[k]
        return law.at[k].set(weight) / (1 + weight)

    return lax.fori_loop(1, n, restore, jnp.zeros(n, chain.dtype).at[0].set(1.0))


def _resolvent(chain: Float[Array, "n n"], leak: Float[Array, " n"]) -> Float[Array, "n n"]:
    """(1 - A)⁻¹ of a block A whose rows sum to 1 with the leak, by sums of positive terms; diagonals are not read."""
    n = chain.shape[0]
    if n > BLOCK:
        m = n // 2
        up, down = chain[:m, m:], chain[m:, :m]
        second = _resolvent(chain[m:, m:], leak[m:] + down.sum(1))
        back = second @ down  # from the second half to the first
        first = _resolvent(chain[:m, :m] + up @ back, leak[:m] + up @ (second @ leak[m:]))
        ahead = first @ (up @ second)
        return jnp.block([[first, ahead], [back @ first, second + back @ ahead]])
    before = jnp.arange(n)

    def eliminate(step, state):
        chain, leak, values, leaves = state
        k = n - 1 - step
        row = jnp.where(before < k, chain[k], 0.0)
        total = jnp.maximum(row.sum() + leak[k], _nothing(chain))
        column = jnp.where(before < k, chain[:, k], 0.0) / total
        chain, leak = chain + column[:, None] * row, leak + column * leak[k]
        return chain, leak, values + column[:, None] * values[k], leaves.at[k].set(total)

    start = (chain, leak, jnp.eye(n, dtype=chain.dtype), jnp.ones(n, chain.dtype))
    chain, _, values, leaves = lax.fori_loop(0, n, eliminate, start)

    def restore(k, values):
        row = jnp.where(before < k, chain[k], 0.0)
        return values.at[k].set((values[k] + row @ values) / leaves[k])

    return lax.fori_loop(0, n, restore, values)


def flow_chain(q: Float[Array, "states words"], heard: Float[Array, "words words"]) -> Float[Array, "flows flows"]:
    """The chain of an agent seen just after it speaks, who hears words with probabilities by what it says."""
    space = MemorySpace.from_sizes(*q.shape)
    n_words, n_kept = space.n_words, space.n_full // space.n_digits
    said = q[space.offset(space.memory_length) :].reshape(-1, n_words, n_words)  # flow, heard, said
    flow = jnp.arange(len(said))
    full = n_words * flow[:, None] + jnp.arange(n_words)
    to = n_words * (full % n_kept)[:, :, None] + jnp.arange(n_words)
    chain = jnp.zeros((len(said), len(said)), q.dtype)
    return chain.at[flow[:, None, None], to].add(heard[flow % n_words][:, :, None] * said)


@eqx.filter_jit
def composition(game: WordGame, Q: Float[Array, "*apart words"]) -> Float[Array, "*species states"]:
    """p(Q): where agents are whose partners say word w with probability Q_w; sums to the share of each species.

    In a game with `meets` each species hears words of its own, Q[m]. Where there are several sets of memories that an
    agent never leaves there are many such compositions. This is one of them, and its derivatives mean nothing.

    Examples
    --------
    >>> from meanfield import core
    >>> q = np.array([0.6, 0.9, 0.5, 0.5, 0.1])
    >>> game = core.WordGame(np.stack([q, 1 - q], axis=-1))
    >>> print(core.composition(game, np.array([0.5, 0.5])).round(3))
    [0.   0.25 0.25 0.25 0.25]
    """

    def alone(q: Float[Array, "states words"], heard: Float[Array, "words words"]) -> Float[Array, " states"]:
        said = stationary(flow_chain(q, heard)).reshape(-1, len(heard), 1)
        full = (said * heard).ravel()
        return jnp.concatenate([jnp.zeros(q.shape[0] - full.size, q.dtype), full])

    return game.share[..., None] * _of_each(alone, game, Q)


@eqx.filter_jit
def response(game: WordGame, Q: Float[Array, "*apart words"]) -> Float[Array, "*apart words"]:
    """F(Q) = Σ_m s_m q_mᵀ p_m(Q) + c: what a random agent says if all partners say word w with probability Q_w.

    In a game with `meets` it is what the partners of each species say if each species m hears Q[m]. Each share
    has full relative accuracy, however small it is. Derivatives solve the Poisson equation of the chain.

    Examples
    --------
    >>> from meanfield import core
    >>> q = np.array([0.6, 0.9, 0.5, 0.5, 0.1])
    >>> game = core.WordGame(np.stack([q, 1 - q], axis=-1))
    >>> print(core.response(game, np.array([0.5, 0.5])).round(3))
    [0.5 0.5]
    """

    def alone(q: Float[Array, "states words"], heard: Float[Array, "words words"]) -> Float[Array, " words"]:
        return stationary(flow_chain(q, heard)).reshape(-1, q.shape[-1]).sum(0)

    said = game.share[..., None] * _of_each(alone, game, Q)
    if game.meets is None:
        return said.reshape(-1, Q.shape[-1]).sum(0) + game.committed
    heard = game.meets @ (said + game.committed)
    return heard / heard.sum(-1, keepdims=True)


def _of_each(function: Callable[[Array, Array], Array], game: WordGame, Q: Float[Array, "*apart words"]) -> Array:
    """`function` of the policy of each species and of what it hears."""
    expected = (() if game.meets is None else game.q.shape[:1]) + game.q.shape[-1:]
    if Q.shape != expected:
        raise ValueError(f"Q has shape {Q.shape}: expected {expected}")
    heard = _heard(game, Q)
    if game.q.ndim == 2:
        return function(game.q, heard)
    return jax.vmap(function, (0, None if game.meets is None else 0))(game.q, heard)


def _heard(game: WordGame, Q: Float[Array, "*apart words"]) -> Float[Array, "*apart words words"]:
    """The probability that an agent who says a hears b, where all others say words with probabilities Q."""
    n_words = Q.shape[-1]
    if game.groups is None:
        return jnp.broadcast_to(Q[..., None, :], (*Q.shape[:-1], n_words, n_words))
    return game.groups.heard_from(Q)
