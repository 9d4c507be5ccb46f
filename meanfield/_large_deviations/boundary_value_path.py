"""The likeliest path out of an attractor as a boundary-value problem, which makes an approximate path exact.

Hamilton's equations dx/dt = ∂h/∂p, dp/dt = -∂h/∂x are solved by collocation of order four on a mesh that adapts itself,
from x = attractor + Cp to p = s·l next to the saddle. The linearised equations take the approximate path closer to both
before.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.integrate import solve_bvp
from scipy.linalg import expm

from meanfield._large_deviations.linearised import Ends
from meanfield._large_deviations.path import Path, all_weights

TOLERANCE = 1e-9  # residual of the equations, relative to the rates
MAX_NODES = 5000
CLOSER_TO_SADDLE = 100.0  # how many times
FIRST_MOMENTUM = 1e-4  # at the start, larger numbers first are made this small


def polished(path: Path, ends: Ends, decay: float) -> Path | None:
    """The exact path next to this one, or None if it is not found."""
    h, tangent, d = ends.hamiltonian, ends.tangent, ends.tangent.shape[1]

    def points(state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return ends.attractor + state[:d].T @ tangent.T, state[d : 2 * d].T @ tangent.T

    def rates(time: np.ndarray, state: np.ndarray) -> np.ndarray:
        x, p = points(state)
        velocity, force = h.slopes(x, p)
        return np.concatenate([tangent.T @ velocity.T, -tangent.T @ force.T, (p * velocity).sum(1)[None]])

    def derivatives(time: np.ndarray, state: np.ndarray) -> np.ndarray:
        x, p = points(state)
        xx, xp, pp = (np.moveaxis(tangent.T @ one @ tangent, 0, 2) for one in h.curvature(x, p))
        moved, momentum = xp.swapaxes(0, 1), state[d : 2 * d]
        matrix = np.zeros((2 * d + 1, 2 * d + 1, len(x)))
        matrix[:d, :d], matrix[:d, d : 2 * d] = moved, pp
        matrix[d : 2 * d, :d], matrix[d : 2 * d, d : 2 * d] = -xx, -xp
        matrix[-1, :d] = np.einsum("in,ijn->jn", momentum, moved)
        matrix[-1, d : 2 * d] = np.einsum("in,ijn->jn", momentum, pp) + tangent.T @ h.slopes(x, p)[0].T
        return matrix

    def conditions(first: np.ndarray, last: np.ndarray) -> np.ndarray:
        spread = ends.covariance @ first[d : 2 * d]
        action = first[-1] - first[d : 2 * d] @ spread / 2
        return np.concatenate([first[:d] - spread, last[d : 2 * d] - end, [action]])

    time, guess, end = _longer(path, ends, decay)
    with np.errstate(all="ignore"):  # iterates far from the path may leave all bounds
        found = solve_bvp(rates, conditions, time, guess, fun_jac=derivatives, tol=TOLERANCE, max_nodes=MAX_NODES)
    if not found.success:
        return None
    x, p = points(found.y)
    values, action = h.value(x, p), found.y[-1]
    barrier = action[-1] + ends.ending.beyond(x[-1], ends.ending.strength(x[-1]))
    error, weight = np.trapezoid(np.abs(values), found.x), all_weights(found.x, decay, ends.ending.growth)
    return Path(found.x, x, p, action, values, float(barrier), float(error), weight)


def _longer(path: Path, ends: Ends, decay: float) -> tuple[np.ndarray, np.ndarray, Float[np.ndarray, " directions"]]:
    """Times, coordinates of x and p and the action of a path that goes on at both ends, and p at its end."""
    step, growth = float(path.time[1]), ends.ending.growth
    x, p = (path.x - ends.attractor) @ ends.tangent, path.p @ ends.tangent
    before = np.arange(step, np.log(np.abs(p[0]).max() / FIRST_MOMENTUM) / decay, step)[::-1]
    earlier = np.array([expm(ends.jacobian.T * time) @ p[0] for time in before]).reshape(-1, p.shape[1])
    after = np.arange(step, np.log(CLOSER_TO_SADDLE) / growth, step)
    later = np.exp(-growth * after)[:, None] * (path.p[-1] @ ends.tangent)
    saddle = (ends.saddle - ends.attractor) @ ends.tangent
    x = np.vstack([earlier @ ends.covariance, x, saddle + later @ ends.at_saddle])
    p = np.vstack([earlier, p, later])
    time = np.concatenate([-before, path.time, path.time[-1] + after])
    start, stop = path.action[0], path.action[-1]
    action = np.concatenate([np.full(len(before), start), path.action, np.full(len(after), stop)])
    return time - time[0], np.vstack([x.T, p.T, action]), later[-1]
