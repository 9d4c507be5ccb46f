"""The prefactor of a mean lifetime without fields, for games of few states whose agents do more than meet in pairs.

Beside the path the quasi-stationary distribution of N agents is R(x) exp(-Nφ(x)), p = ∇φ. With Z = ∇∇φ and N·H + H₁ for
the rates of N agents (H₁ since agents do not meet themselves), the master equation gives along the path

    dZ/dt = -[H_xx + H_xp Z + Z H_px + Z H_pp Z],   d log R/dt = -[tr H_xp + ½ tr(H_pp Z) - H₁],

from Z = C⁻¹ at the attractor. With Z = Z_s at the saddle, of one negative eigenvalue, the flow over it makes

    1/T = λ/2π √(det C⁻¹/|det Z_s|) exp(-∫ [tr H_xp + ½ tr(H_pp Z) - H₁] dt) exp(-NΔ).

Where agents die out Z diverges, and W = Z⁻¹ does not. The mean of exp(N p·x), known there (`extinction`), is
R √det W exp(N(p·x - φ)) along the path, with

    dW/dt = H_pp + H_px W + W H_xp + W H_xx W,   d log(R √det W)/dt = ½ tr(H_xx W) + H₁.

Source: Maier and Stein, SIAM J. Appl. Math. 57, 752 (1997); Bouchet and Reygner, Ann. Henri Poincaré 17, 3499 (2016).
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

from meanfield._large_deviations.linearised import Ends
from meanfield._large_deviations.path import Path
from meanfield._large_deviations.random_fields import Prefactor

LAST = (
    1e-2  # strength where Z ends, against the largest: errors of Z grow as the square of the factor by which it falls
)
ORDER = 15  # what a step twice as long changes, against the error, for splines of order four


def transported(path: Path, ends: Ends) -> Prefactor | None:
    """The prefactor along an exact path, or None where Z grows beyond all bounds before the saddle.

    The error of the first Z is of the order of the first momentum, and is extrapolated to none.
    """
    size, growth = np.ptp(path.p, axis=1), ends.ending.growth
    strength = ends.strengths(path.p)
    stop = len(size) - int(np.argmax(strength[::-1] > LAST * strength.max())) + 1
    stop = min(stop, len(size))
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
