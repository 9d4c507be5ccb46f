"""The prefactor of a mean lifetime, from the fluctuations of fields along the path.

As from empty memories (`next_order`), N agents are independent ones in a random field, and the fluctuations about the
path contribute det₂(1 - K)^-½. At the distance y from the saddle, along its unstable direction, populations that come
from the attractor have a density R exp(-N(Δ - λy²/lᵀDl)). The path ends where the integral of exp(N p·x) times it has
its least term, not its largest: the determinant is negative, and R √(πlᵀDl/λN) its root. The stationary flow over the
saddle is R √(lᵀDl λ/4πN) exp(-NΔ). R drops out:

    1/T = λ/2π |det₂(1 - K)|^-½ exp(½ ∫ [Σ_ab g_ab g_ba - Σ_c n_c Σ_ab g^c_ab g^c_ba] dt) exp(-NΔ),

with n_c the fraction of agents of kind c, committed ones too, and g^c the fields of one of them. The integral is 0
for agents of one kind; it comes from agents not meeting themselves.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from meanfield._finite_size.fluctuations import STEPS, Covariance, log_determinants, without_step
from meanfield._large_deviations.prefactor import Prefactor

CUT = 1.5  # times in which momenta grow or fade e-fold: how much shorter the path is to which it is compared


def prefactor_of(
    covariance: Covariance, others: Float[np.ndarray, " nodes"], step: float, decay: float, growth: float
) -> Prefactor | None:
    """The prefactor from the covariance of all agents' fields and the integrand of agents who do not meet themselves.

    What both ends leave out fades exponentially, and is extrapolated. None if a sign is wrong.
    """
    last = len(others) - 1
    first = last % STEPS[-1]  # where the steps of all lengths start, so that they end together
    from_attractor, from_saddle = (STEPS[-1] * round(max(1, CUT / rate / step / STEPS[-1])) for rate in (decay, growth))
    if 2 * (from_attractor + from_saddle) > last:
        return None
    windows = [slice(first, last + 1), slice(first + from_attractor, last + 1), slice(first, last - from_saddle + 1)]
    found = [_logarithm(covariance[one, one], others[one], step) for one in windows]
    if any(np.isnan(one) for one, _ in found):
        return None
    (whole, error), (later, _), (earlier, _) = found
    gains = np.exp([from_attractor * step * decay, from_saddle * step * growth]) - 1
    corrections = (whole - np.array([later, earlier])) / gains
    logarithm = np.log(2 * np.pi / growth) + whole + corrections.sum()
    return Prefactor(float(logarithm), float(error + np.abs(corrections).sum()))


def _logarithm(covariance: Covariance, others: Float[np.ndarray, " nodes"], step: float) -> tuple[float, float]:
    signs, logarithms = zip(*log_determinants(covariance, np.full(len(others), step)), strict=True)
    if max(signs) >= 0:  # one direction grows, that of the path
        return np.nan, np.nan
    logarithm, error = without_step(logarithms)
    return logarithm / 2 - float(np.trapezoid(others, dx=step)) / 2, error / 2
