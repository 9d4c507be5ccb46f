"""The likeliest path out of an attractor by collocation of order four between its linearised ends, for few states.

It makes an approximate path exact, or follows one from the saddle to points ever farther down the way to the attractor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_bvp
from scipy.linalg import expm

from meanfield._large_deviations.exits import Path, Way, all_weights
from meanfield._large_deviations.linearised import Ends

TOLERANCE, ROUGH = 1e-9, 1e-3  # residual of the equations, relative to the rates, at last and on the way
MAX_NODES = 5000
CLOSER_TO_SADDLE = 100.0  # how many times
FIRST_MOMENTUM = 1e-4  # at the start, against the largest: a larger one is first made this small
STEP, FEWEST, MOST_STEPS = 0.5, 64, 2000  # of the first mesh, in units of the fastest rate, and its nodes
STRETCHES = 8  # in which the path is followed at first
MOST_ITERATIONS, SETTLED = 60, 1e-12  # of the size of momenta


class _Trajectory(NamedTuple):
    """Coordinates of x and p and the action so far, at some times."""

    time: np.ndarray
    state: np.ndarray


def polished(path: Path, ends: Ends, decay: float) -> Path | None:
    """The exact path next to this one, or None if it is not found."""
    d = ends.tangent.shape[1]
    guess = _longer(path, ends, decay)
    begin, end = guess.state[d : 2 * d, [0, -1]].T

    def conditions(first: np.ndarray, last: np.ndarray, pace: np.ndarray) -> np.ndarray:
        spread = ends.covariance @ first[d : 2 * d]
        action = first[-1] - first[d : 2 * d] @ spread / 2
        phase = begin @ first[d : 2 * d] / (begin @ begin) - 1
        return np.concatenate([first[:d] - spread, last[d : 2 * d] - end, [action, phase]])

    found = _solved(ends, guess, conditions, TOLERANCE, [1.0])
    if found is None:
        return None
    x, p = _points(ends, found.state)
    values, action = ends.hamiltonian.flow(x, p).value, found.state[-1]
    barrier = action[-1] + ends.ending.beyond(x[-1], ends.ending.strength(x[-1]))
    error, weight = np.trapezoid(np.abs(values), found.time), all_weights(found.time, decay, ends.ending.growth)
    return Path(found.time, x, p, action, values, float(barrier), float(error), weight)


def followed(way: Way, ends: Ends) -> Path | None:
    """The exact path of an exit, or None if it is not found."""
    d, ending = ends.tangent.shape[1], ends.ending
    left, base = ending.left @ ends.tangent, ending.base @ ends.tangent
    whole = _reversed(way, ends)
    at, found = len(whole.time) - 1, _Trajectory(whole.time[-1:], whole.state[:, -1:])
    stretch = at // STRETCHES
    level = ending.level - float(ending.left @ ends.attractor)
    while at > 0:
        to = max(0, at - stretch)
        start, below = whole.state[:d, to], whole.state[d : 2 * d, at]

        def conditions(first: np.ndarray, last: np.ndarray, *_: np.ndarray, start: np.ndarray = start) -> np.ndarray:
            strength = (level - left @ last[:d]) / ending.width
            return np.concatenate([first[:d] - start, last[d : 2 * d] - base - strength * left, first[-1:]])

        earlier = whole.state[:, to:at].copy()
        earlier[d : 2 * d] *= found.state[d : 2 * d, 0] @ below / (below @ below)
        guess = _Trajectory(np.append(whole.time[to:at], found.time), np.hstack([earlier, found.state]))
        tried = _solved(ends, guess, conditions, ROUGH)
        if tried is not None:
            at, found, stretch = to, tried, 2 * stretch
        elif (stretch := stretch // 2) == 0:
            return None
    x, p = _points(ends, found.state)
    none = np.zeros(len(x))
    return polished(Path(found.time, x, p, found.state[-1], none, 0.0, 0.0, none), ends, way.decay)


def _points(ends: Ends, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    d = ends.tangent.shape[1]
    return ends.attractor + state[:d].T @ ends.tangent.T, state[d : 2 * d].T @ ends.tangent.T


def _solved(
    ends: Ends, guess: _Trajectory, conditions: Callable, tolerance: float, pace: list[float] | None = None
) -> _Trajectory | None:
    """The solution next to the guess; a `pace` is the factor by which time passes faster, at first, and is found."""
    h, tangent, d = ends.hamiltonian, ends.tangent, ends.tangent.shape[1]

    def rates(time: np.ndarray, state: np.ndarray, pace: Any = (1.0,)) -> np.ndarray:
        x, p = _points(ends, state)
        _, velocity, force = h.flow(x, p)
        slopes = np.concatenate([tangent.T @ velocity.T, -tangent.T @ force.T, (p * velocity).sum(1)[None]])
        return pace[0] * slopes / h.fastest

    def derivatives(time: np.ndarray, state: np.ndarray, *paces: np.ndarray) -> Any:
        x, p = _points(ends, state)
        xx, xp, pp = (np.moveaxis(one, 0, 2) for one in h.curvature(x, p))
        moved, momentum = xp.swapaxes(0, 1), state[d : 2 * d]
        matrix = np.zeros((2 * d + 1, 2 * d + 1, len(x)))
        matrix[:d, :d], matrix[:d, d : 2 * d] = moved, pp
        matrix[d : 2 * d, :d], matrix[d : 2 * d, d : 2 * d] = -xx, -xp
        matrix[-1, :d] = np.einsum("in,ijn->jn", momentum, moved)
        matrix[-1, d : 2 * d] = np.einsum("in,ijn->jn", momentum, pp) + tangent.T @ h.flow(x, p).by_p.T
        matrix /= h.fastest
        return (paces[0][0] * matrix, rates(time, state)[:, None]) if paces else matrix

    options: Any = {"fun_jac": derivatives, "tol": tolerance, "max_nodes": MAX_NODES}
    with np.errstate(all="ignore"):  # iterates far from the path may leave all bounds
        found: Any = solve_bvp(rates, conditions, guess.time * h.fastest, guess.state, pace, **options)
    time = found.x / h.fastest * (1.0 if pace is None else found.p[0])
    return _Trajectory(time, found.y) if found.success else None


def _longer(path: Path, ends: Ends, decay: float) -> _Trajectory:
    """A path that goes on at both ends."""
    step, growth = max(float(path.time[1] - path.time[0]), np.ptp(path.time) / MOST_STEPS), ends.ending.growth
    x, p = (path.x - ends.attractor) @ ends.tangent, path.p @ ends.tangent
    before = np.arange(step, np.log(np.abs(p[0]).max() / (FIRST_MOMENTUM * np.abs(p).max())) / decay, step)[::-1]
    earlier = np.array([expm(ends.jacobian.T * time) @ p[0] for time in before]).reshape(-1, p.shape[1])
    after = np.arange(step, np.log(CLOSER_TO_SADDLE) / growth, step)
    strengths = ends.strengths(path.p[-1:]) * np.exp(-growth * after)[:, None]
    later = (ends.saddle + strengths * ends.along - ends.attractor) @ ends.tangent
    x = np.vstack([earlier @ ends.covariance, x, later])
    p = np.vstack([earlier, p, (ends.ending.base + strengths * ends.ending.left) @ ends.tangent])
    time = np.concatenate([path.time[0] - before, path.time, path.time[-1] + after])
    start, stop = path.action[0], path.action[-1]
    action = np.concatenate([np.full(len(before), start), path.action, np.full(len(after), stop)])
    return _Trajectory(time - time[0], np.vstack([x.T, p.T, action]))


def _reversed(way: Way, ends: Ends) -> _Trajectory:
    """The way down backwards, with the momentum of weak noise, p = -2D⁻¹F, of a size with which H = 0."""
    n_steps = int(min(MOST_STEPS, max(FEWEST, np.ceil(way.duration * way.model.fastest / STEP))))
    time = np.linspace(0.0, way.duration, n_steps)
    x, E, h = way.downhill(way.duration - time).T[:, way.face], ends.tangent, ends.hamiltonian
    still = np.zeros_like(x)
    p = -2 * np.linalg.solve(h.curvature(x, still).pp, (h.flow(x, still).by_p @ E)[..., None])[..., 0] @ E.T
    size = np.ones((len(x), 1))
    for _ in range(MOST_ITERATIONS):
        value, by_p, _ = h.flow(x, size * p)
        slope = (by_p * p).sum(1)  # H falls from 0 to its least value, and grows ever faster from there
        step = np.where(slope > 0, -value / slope, size[:, 0])[:, None]
        size = size + np.clip(step, -size / 2, size)
        if np.abs(step / size).max() < SETTLED:
            break
    p = size * p
    action = np.append(0.0, np.cumsum(((p[1:] + p[:-1]) * np.diff(x, axis=0)).sum(1) / 2))
    return _Trajectory(time, np.vstack([((x - ends.attractor) @ E).T, (p @ E).T, action]))
