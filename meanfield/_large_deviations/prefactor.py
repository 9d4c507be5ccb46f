"""The prefactor of a mean lifetime (docs/theory/rare_events.md), from the fluctuations about the path.

Where agents meet in pairs it follows from the fields, as |det₂(1 - K)|^-½ with K the covariance of one agent's fields:
over a saddle the determinant is negative. Without fields it follows from the second derivatives Z of the action, or
W = Z⁻¹ where agents die out, by the master equation along the path (Maier and Stein, SIAM J. Appl. Math. 57, 752
(1997); Bouchet and Reygner, Ann. Henri Poincaré 17, 3499 (2016)).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

from meanfield._finite_size.fluctuations import STEPS, Covariance, log_determinants, without_step
from meanfield._large_deviations.exits import Nodes, Path
from meanfield._large_deviations.linearised import Ends

STRENGTHS = 0.2, 0.1, 0.05  # at which parts of the path to an extinction end, over the strength of the whole momentum
CUT = 1.5  # times in which momenta grow or fade e-fold: how much shorter the path is to which it is compared
LAST = 1e-2  # strength where Z ends, over the largest: errors of Z grow as the square of the factor by which it falls
ORDER = 15  # what a step twice as long changes, against the error, for splines of order four


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
    others: Nodes
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
    fluctuations: Fluctuations, decay: float, fading: float, weight: float, strengths: Nodes
) -> Prefactor | None:
    """The same for an extinction, where the determinant vanishes at the end of the path.

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


def transported(path: Path, ends: Ends) -> Prefactor | None:
    """The prefactor along an exact path, or None where Z grows beyond all bounds before the saddle.

    The error of the first Z is of the order of the first momentum, and is extrapolated to none.
    """
    size, growth = np.ptp(path.p, axis=1), ends.ending.growth
    strength = ends.strengths(path.p)
    stop = min(len(size) - int(np.argmax(strength[::-1] > LAST * strength.max())) + 1, len(size))
    stop -= 1 - stop % 2  # every second node ends with the last
    later = int(np.argmax(size > 2 * size[0]))
    if not 0 < later < stop:
        return None
    found = [_integral(path, ends, slice(*nodes)) for nodes in ((0, stop), (later, stop), (0, stop, 2))]
    known = [one for one in found if one]
    if len(known) < len(found):
        return None
    (whole, last), (shorter, _), (coarse, _) = known
    before, step_error = (whole - shorter) / (size[later] / size[0] - 1), float(abs(whole - coarse) / ORDER)
    if ends.at_saddle is None:
        falls = np.diff(np.log(strength[stop - 2 : stop])) / np.diff(path.time[stop - 2 : stop])
        beyond, power = (last - falls.item()) / growth, -0.5
        end = np.log(2 * np.pi / ends.weight) / 2 - np.log(growth * strength[stop - 1])
    else:
        beyond, power = last / growth, 0.0
        ratio = np.linalg.slogdet(ends.covariance)[1] - np.linalg.slogdet(ends.at_saddle)[1]
        end = np.log(2 * np.pi / growth) + ratio / 2
    error = step_error + abs(before) + abs(beyond)
    return Prefactor(float(end + whole + before + beyond), float(error), step_error, power)


def _integral(path: Path, ends: Ends, nodes: slice) -> tuple[float, float] | None:
    """∫ [tr H_xp + ½ tr(H_pp Z) - H₁] dt from some of the nodes, and the integrand at the last.

    Where agents die out it is -∫ [½ tr(H_xx W) + H₁] dt.
    """
    h, d, to_saddle = ends.hamiltonian, ends.tangent.shape[1], ends.at_saddle is not None
    time, x, p = path.time[nodes], path.x[nodes], path.p[nodes]
    second = CubicSpline(time, np.stack(h.curvature(x, p), axis=1))
    others = CubicSpline(time, h.met_others(x, p))

    def integrand(t: float, Z: np.ndarray) -> float:
        xx, xp, pp = second(t)
        gained = np.trace(xp) + np.vdot(pp, Z) / 2 if to_saddle else -np.vdot(xx, Z) / 2
        return float(gained - others(t))

    def rate(t: float, state: np.ndarray) -> np.ndarray:
        Z = state[:-1].reshape(d, d)
        xx, xp, pp = second(t)
        grown = -(xx + xp @ Z + Z @ xp.T + Z @ pp @ Z) if to_saddle else pp + xp.T @ Z + Z @ xp + Z @ xx @ Z
        return np.append(grown, integrand(t, Z))

    start = np.append(np.linalg.inv(ends.covariance) if to_saddle else ends.covariance, 0.0)
    with np.errstate(all="ignore"):
        found = solve_ivp(rate, time[[0, -1]], start, "DOP853", rtol=1e-9, atol=1e-12)
    if found.status != 0 or not np.isfinite(found.y[:, -1]).all():
        return None
    return float(found.y[-1, -1]), integrand(time[-1], found.y[:-1, -1].reshape(d, d))
