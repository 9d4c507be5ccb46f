"""The reaction tensor P_k(i, j), factorised through the words.

A partner acts only through the word it says, so an agent in state i moves to Γ(i, a, b) with probability q_a(i) Q_b,
where Q is the word share of the partners. In heap order (see `MemorySpace`) the successors of a memory stand side by
side, so the gain term is two reshapes and a sum: O(S·W²), no gather, no scatter.

Functions take NumPy and JAX arrays alike, one policy at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from meanfield._population.memory import MemorySpace
from meanfield._population.single_policy import single_policy, space_of
from meanfield.toolbox._errors import InputError

Array = Any  # numpy.ndarray or jax.Array
MAX_DENSE_STATES = 400  # 400³ float64 are 0.5 GB


def word_share(x: Float[Array, " states"], q: Float[Array, "states words"]) -> Float[Array, " words"]:
    """Q_w = Σ_i x_i q_w(i), the word share of a random partner from the composition x."""
    return x @ q


def spoken(
    x: Float[Array, " states"], q: Float[Array, "states words"], space: MemorySpace
) -> Float[Array, "kept words"]:
    """Weight of agents by the memory they keep after this interaction and the word they say in it.

    Agents with a full memory forget its oldest interaction, so the rows are the memories of at most H - 1.
    """
    xp = x.__array_namespace__()
    said = x[:, None] * q
    full = space.offset(space.memory_length)
    shortened = said[full:].reshape(space.n_digits, -1, space.n_words).sum(0)
    longest = space.offset(space.memory_length - 1)
    return xp.concat([said[:longest], said[longest:full] + shortened])


def heard(kept: Float[Array, "kept words"], Q: Float[Array, " words"]) -> Float[Array, " states"]:
    """The composition after agents of weight `kept` have heard a word drawn from Q; no memory is empty then."""
    xp = kept.__array_namespace__()
    return xp.concat([xp.zeros(1, dtype=kept.dtype), (kept[:, :, None] * Q[None, None, :]).reshape(-1)])


def gain(
    x: Float[Array, " states"],
    Q: Float[Array, " words"],
    q: Float[Array, "states words"],
    space: MemorySpace,
) -> Float[Array, " states"]:
    """A(Q)ᵀx with A(Q)[i → Γ(i, a, b)] = q_a(i) Q_b: the composition after every agent has interacted once."""
    return heard(spoken(x, q, space), Q)


def dense_tensor(policy: xr.Dataset) -> Float[np.ndarray, "states states states"]:
    """The dense reaction tensor P[k, i, j] = P_k(i, j), for small state spaces.

    P_k(i, j) = Σ_ab q_a(i) q_b(j) [k = Γ(i, a, b)] is the probability that an agent in state i goes to state k on
    meeting one in state j; Σ_k P_k(i, j) = 1. Source: [004] Eq. 16, whose last case reads (1 - q(i))(1 - q(j)).

    Raises
    ------
    InputError
        If the space has more than 400 states.

    Examples
    --------
    >>> policy = meanfield.make_policy(np.array([0.6, 0.9, 0.5, 0.5, 0.1]), ["A", "B"])
    >>> P = meanfield.dense_tensor(policy)
    >>> P[:, 0, 0].round(2)  # two agents without memories meet: one then remembers nothing, A/A, A/B, B/A, B/B
    array([0.  , 0.36, 0.24, 0.24, 0.16])
    """
    policy = single_policy(policy)
    space = space_of(policy)
    if space.n_states > MAX_DENSE_STATES:
        raise InputError(
            f"policy has {space.n_states} states: expected at most {MAX_DENSE_STATES} for the dense tensor; "
            "solve, fixed_points and spectrum never need it"
        )
    q = policy["q"].values
    states = np.arange(space.n_states)
    tensor = np.zeros((space.n_states,) * 3)
    for own in range(space.n_words):
        for partner in range(space.n_words):
            tensor[space.successors() + space.n_words * own + partner, states] += np.outer(q[:, own], q[:, partner])
    return tensor
