"""The rate equation of several kinds of agents who meet each other and committed agents.

    dx_m/dt = A_m(Q)ᵀ x_m - x_m,   Q = Σ_m s_m q_mᵀ x_m + c,

with s_m the share of kind m among all agents and c_w that of agents who always say w, Σ_m s_m + Σ_w c_w = 1. Kinds act
on each other through Q alone. Functions take NumPy and JAX arrays alike.
"""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float

from meanfield._population.memory import MemorySpace
from meanfield._population.reaction_tensor import Array, gain, heard, spoken


class Mixture(NamedTuple):
    """The numbers of a population.

    Attributes
    ----------
    q
        Choice probabilities of each kind, shape (M, S, W).
    share
        Share of each kind among all agents, shape (M,).
    committed
        Share of agents who always say a word, shape (W,).
    """

    q: Float[Array, "kinds states words"]
    share: Float[Array, " kinds"]
    committed: Float[Array, " words"]


def mixture_word_share(x: Float[Array, "kinds states"], mixture: Mixture) -> Float[Array, " words"]:
    """Q, what a partner drawn from all agents says; each x_m is taken relative to its sum."""
    said = [x[m] @ mixture.q[m] for m in range(x.shape[0])]
    return sum(mixture.share[m] * (Q / Q.sum()) for m, Q in enumerate(said)) + mixture.committed


def mixture_drift(
    x: Float[Array, "kinds states"], mixture: Mixture, space: MemorySpace
) -> Float[Array, "kinds states"]:
    """F_m(x) = A_m(Q)ᵀx_m - x_m, which conserves each Σx_m whatever its value."""
    xp = x.__array_namespace__()
    Q = mixture_word_share(x, mixture)
    return xp.stack([gain(x[m], Q, mixture.q[m], space) - x[m] for m in range(x.shape[0])])


def mixture_linearised_drift(
    v: Float[Array, "kinds states"], x: Float[Array, "kinds states"], mixture: Mixture, space: MemorySpace
) -> Float[Array, "kinds states"]:
    """J(x)v for a perturbation v with Σ_i v_m(i) = 0 for each kind: A_m(Q)ᵀv_m + (∂A_m/∂Q ᵀ x_m) δQ - v_m."""
    xp = x.__array_namespace__()
    Q = mixture_word_share(x, mixture)
    change = sum(mixture.share[m] * (v[m] @ mixture.q[m]) for m in range(x.shape[0]))
    rows = [
        gain(v[m], Q, mixture.q[m], space) + heard(spoken(x[m], mixture.q[m], space), change) - v[m]
        for m in range(x.shape[0])
    ]
    return xp.stack(rows)
