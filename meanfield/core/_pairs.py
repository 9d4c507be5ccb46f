"""Agents on a random graph: the pair approximation, by the memories of the two agents at the ends of an edge.

X(a, b) is the joint distribution of the memories at the ends of an edge. In a unit of time each agent meets one of its
k neighbours; a pair of neighbours meets at the rate 1/k, and each of the two meets somebody else at the rate
(k - 1)/k. Who else that is depends on its own memory only (the closure), so that agents in memory a hear

    h_a(v) = Σ_c X(a, c) q_v(c) / Σ_c X(a, c),
    dX/dt = (E - X)/k + (k - 1)/k (A + Aᵀ - 2X),
    E = Σ_abwv X(a, b) q_w(a) q_v(b) [Γ(a, w, v), Γ(b, v, w)],   A = Σ_abwv X(a, b) q_w(a) h_a(v) [Γ(a, w, v), b].

As k → ∞, X = x xᵀ with x a solution of the rate equation of a well-mixed population.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from meanfield.core._game import Array, Flow, keep


class EdgeGame(Flow):
    """The naming game on a random regular graph, where neighbours remember each other: the pair approximation.

    X has a row for each memory at one end of an edge and columns for the memory at the other end, followed by agents
    there who are committed to each word. It is symmetric between memories and sums to the share of agents who are not
    committed. A unit of time is half a round, in which each agent meets one neighbour on average.

    Parameters
    ----------
    q
        Choice probabilities, shape (S, W).
    committed
        Share of all agents who always say each word, shape (W,), anywhere on the graph.
    degree
        The number of neighbours, k ≥ 2; it need not be whole.

    Examples
    --------
    >>> import jax
    >>> from meanfield import core
    >>> q = np.array([0.5, 0.9, 0.5, 0.5, 0.1])  # P(first word); H = 1
    >>> with jax.enable_x64(True):
    ...     game = core.EdgeGame(np.stack([q, 1 - q], axis=-1), np.array([0.1, 0]), 4.0)
    ...     start = game.independent(np.array([0, 0, 0, 0, 0.9]))  # all others agree on the second word
    ...     found = core.trajectory(game, start, np.array([0.0, 20.0]), observe=game.word_share)
    ...     print(found.observed.round(3))
    [[0.19  0.81 ]
     [0.609 0.391]]
    """

    q: Float[Array, "states words"]
    committed: Float[Array, " words"]
    degree: Float[Array, ""]

    def __init__(self, q, committed, degree) -> None:
        self.q = jnp.asarray(q)
        self.committed, self.degree = (jnp.asarray(values, self.q.dtype) for values in (committed, degree))

    @property  # equinox takes a property for an abstract field
    def classes(self) -> Int[Array, "states ends"]:  # pyright: ignore[reportIncompatibleVariableOverride]
        n_states, n_words = self.q.shape
        ends = np.append(np.zeros(n_states, int), np.arange(1, n_words + 1))
        return jnp.broadcast_to(ends, (n_states, n_states + n_words))

    def independent(self, x: Float[Array, " states"]) -> Float[Array, "states ends"]:
        """Neighbours who know nothing of each other, of agents with this composition, in fractions of all agents."""
        return jnp.outer(x, jnp.append(x, self.committed))

    def word_share(self, x: Float[Array, "states ends"]) -> Float[Array, " words"]:
        """The probability that a random agent says each word."""
        return x.sum(1) @ self.q + self.committed

    def drift(self, x: Float[Array, "states ends"]) -> Float[Array, "states ends"]:
        n_states, n_words = self.q.shape
        same = jnp.eye(n_words, dtype=self.q.dtype)
        near = jnp.where(x < 0, 0, x)  # rounding must not make a word less likely than never
        present = near.sum(1, keepdims=True)
        heard = near @ jnp.concatenate([self.q, same]) / jnp.where(present > 0, present, 1)
        heard = jnp.where(present > 0, heard, 1 / n_words)  # by nobody
        flux = keep(jnp.einsum("ae,aw,av->evaw", x, self.q, heard))
        others = _entered(jnp.moveaxis(flux, 1, -1).reshape(len(x.T), -1).T) - x
        others = others.at[:, :n_states].add(others[:, :n_states].T)
        said = keep(x.T[..., None] * self.q)
        both = keep(jnp.einsum("bkw,bv->kwbv", said[:n_states], self.q))
        both = jnp.einsum("kwlv,vx,wy->lvykwx", both, same, same).reshape(n_states - 1, -1)
        firm = jnp.einsum("vkw,vx->kwxv", said[n_states:], same).reshape(-1, n_words)
        edge = _entered(jnp.concatenate([_entered(both).T, firm], axis=1))
        return (edge - x + (self.degree - 1) * others) / self.degree


def held_misfit(
    arrays: tuple[Float[Array, ...], ...],
    word: Int[Array, ""],
    said: Float[Array, ""],
    near: Float[Array, " states"],
    x: Float[Array, "states ends"],
) -> Float[Array, "states ends"]:
    """A function of x that is 0 at fixed points at which agents who are not committed say `word` by `said`.

    x is in fractions of these agents, and as many are committed to the word as are in it; `arrays` are as in
    `EdgeGame`, whose fractions committed to other words stay what they are. `near` is a composition not far off.
    """
    game, n_states = EdgeGame(*arrays), len(x)
    aims = (game.committed - x[:, n_states:].sum(0)).at[word].set(said - x.sum(1) @ game.q[:, word])
    return game.drift(x) + jnp.outer(near, jnp.append((1 - x.sum()) * near, aims))


def held_slope(
    arrays: tuple[Float[Array, ...], ...],
    word: Int[Array, ""],
    said: Float[Array, ""],
    near: Float[Array, " states"],
    x: Float[Array, "states ends"],
    v: Float[Array, "states ends"],
) -> Float[Array, "states ends"]:
    """The derivative of `held_misfit` at x along v."""
    return jax.jvp(lambda x: held_misfit(arrays, word, said, near, x), (x,), (v,))[1]


def _entered(x: Float[Array, "remembered ends"]) -> Float[Array, "states ends"]:
    """A first row for agents who remember nothing, since nobody becomes one."""
    return jnp.pad(x, ((1, 0), (0, 0)))
