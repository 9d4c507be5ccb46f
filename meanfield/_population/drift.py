"""The mean-field rate equation and its linearisation.

dx_k/dt = -x_k + Σ_ij x_i x_j P_k(i, j), in a time of which two units are one population round ([004] Eqs. 1 and 27).
Written with the normalised word share Q = qᵀx / Σx it is dx/dt = A(Q)ᵀx - x, which conserves Σx whatever its value;
the equation as printed drifts off the simplex, since there σ = Σx obeys σ' = σ² - σ.
"""

from __future__ import annotations

from jaxtyping import Float

from meanfield._population.memory import MemorySpace
from meanfield._population.reaction_tensor import Array, gain, heard, spoken, word_share

TIME_PER_ROUND = 2.0  # one round is N interactions, and each of them updates two agents


def drift(x: Float[Array, " states"], q: Float[Array, "states words"], space: MemorySpace) -> Float[Array, " states"]:
    """F(x) = A(Q)ᵀx - x with Q = qᵀx / Σx; shape (S,), per unit of time. Source: [004] Eq. 1."""
    Q = word_share(x, q)
    return gain(x, Q / Q.sum(), q, space) - x


def linearised_drift(
    v: Float[Array, " states"],
    x: Float[Array, " states"],
    q: Float[Array, "states words"],
    space: MemorySpace,
) -> Float[Array, " states"]:
    """J(x) v for a perturbation v with Σv = 0: A(Q)ᵀv + (∂A/∂Q ᵀ x) qᵀv - v; shape (S,).

    With x = e_n it is the reduced Jacobian of [004] Eq. 38, also where [π]^2H is no fixed point.
    """
    return gain(v, word_share(x, q), q, space) + heard(spoken(x, q, space), word_share(v, q)) - v
