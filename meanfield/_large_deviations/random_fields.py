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

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from meanfield._finite_size.fluctuations import STEPS, Covariance, log_determinants, without_step

STRENGTHS = 0.2, 0.1, 0.05  # at which parts of the path to an extinction end, over the strength of the whole momentum
CUT = 1.5  # times in which momenta grow or fade e-fold: how much shorter the path is to which it is compared


class Prefactor(NamedTuple):
    """The logarithm of the prefactor, in units of time, its error, and the power of N by which it is multiplied."""

    logarithm: float
    error: float
    step_error: float  # the part of the error that shorter steps lessen
    power: float = 0.0


class Fluctuations(NamedTuple):
    """Fluctuations of all agents' fields along a path of equal steps, which act on agents by their pairing.

    `others` is the integrand of agents who do not meet themselves.
    """

    covariance: Covariance
    pairing: Float[np.ndarray, "parts parts"]
    others: Float[np.ndarray, " nodes"]
    step: float

    def logarithm(self, first: int, stop: int, sign: float) -> tuple[float, float]:
        """Contribution of a part of the path to a lifetime's logarithm, and its error; NaN if the sign is another."""
        first += (stop - 1 - first) % STEPS[-1]  # so that steps of all lengths end together
        part = slice(first, stop)
        others = self.others[part]
        found = log_determinants(self.covariance[part, part], self.pairing, np.full(len(others), self.step))
        signs, logarithms = map(np.array, zip(*found, strict=True))
        # Determinants themselves: they may be next to 0
        value, error = without_step((signs * np.exp(logarithms - logarithms.max())).tolist())
        if not sign * value > 0:
            return np.nan, np.nan
        logarithm = np.log(abs(value)) + logarithms.max()
        return float(logarithm - np.trapezoid(others, dx=self.step)) / 2, error / abs(value) / 2


def saddle_prefactor(fluctuations: Fluctuations, decay: float, growth: float) -> Prefactor | None:
    """The prefactor over a saddle of this growth, or None if the path is too short or a sign is wrong.

    What both ends leave out fades exponentially, and is extrapolated.
    """
    stop, step = len(fluctuations.others), fluctuations.step
    cuts = [round(max(1, CUT / rate / step)) for rate in (decay, growth)]
    if 2 * sum(cuts) >= stop:
        return None
    windows = (0, stop), (cuts[0], stop), (0, stop - cuts[1])
    (whole, later, earlier), (error, *_) = np.transpose([fluctuations.logarithm(*one, -1.0) for one in windows])
    corrections = (whole - np.array([later, earlier])) / np.expm1(step * np.array(cuts) * [decay, growth])
    logarithm = float(np.log(2 * np.pi / growth) + whole + corrections.sum())
    return None if np.isnan(logarithm) else Prefactor(logarithm, float(error + np.abs(corrections).sum()), float(error))


def extinction_prefactor(
    fluctuations: Fluctuations, decay: float, fading: float, weight: float, strengths: Float[np.ndarray, " nodes"]
) -> Prefactor | None:
    """The same for an extinction, where the determinant vanishes at the end of the path; see `extinction`.

    Parts of the path end with the `strengths` s of their last nodes, from which the prefactor is extrapolated to 0.
    """
    stop, step = len(fluctuations.others), fluctuations.step
    ends = stop - np.array([int(np.argmax(strengths[::-1] > one)) for one in STRENGTHS])
    cut = round(max(1, CUT / decay / step))
    if not 2 * cut < ends[0] or np.unique(ends).size < len(ends):
        return None
    s = strengths[ends - 1]
    found, errors = np.transpose([fluctuations.logarithm(0, end, 1.0) for end in ends])
    weights = np.linalg.solve(np.vander(s).T, np.eye(len(s))[-1])  # of values in the extrapolation of a polynomial to 0
    values = found - np.log(s)
    whole, linear = weights @ values, (values[-1] * s[-2] - values[-2] * s[-1]) / (s[-2] - s[-1])
    later, _ = fluctuations.logarithm(cut, ends[-1], 1.0)
    correction = (found[-1] - later) / np.expm1(step * cut * decay)
    logarithm = float(np.log(2 * np.pi / weight) / 2 - np.log(fading) + whole + correction)
    error = float(np.abs(weights) @ errors)
    further = float(abs(whole - linear) + abs(correction))
    return None if np.isnan(logarithm) else Prefactor(logarithm, error + further, error, -0.5)
