"""Adaptive integration of many initial-value problems at once, in NumPy.

Tsitouras' pair of orders 5 and 4 with its interpolant (Computers & Mathematics with Applications 62, 770 (2011)). Each
problem has its own steps, and leaves the batch when it ends. Nothing is compiled, so that a first solution, of whatever
shape, costs no more than the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from meanfield._errors import InputError

MAX_STEPS = 1_000_000
STAGES = (
    np.array([0.161]),
    np.array([-0.008480655492356989, 0.335480655492357]),
    np.array([2.8971530571054935, -6.359448489975075, 4.3622954328695815]),
    np.array([5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525]),
    np.array([5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383]),
    np.array([0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774]),
)
STAGE_TIMES = np.array([0.0, *(weights.sum() for weights in STAGES)])
# Of order 5 less of order 4
ERROR = np.array(
    [
        0.0017800110522257714,
        0.0008164344596567469,
        -0.007880878010261995,
        0.1447110071732629,
        -0.5823571654525552,
        0.45808210592918697,
        -1 / 66,
    ]
)
# b_i(θ) = Σ_n INTERPOLANT[i, n] θ^(n + 1)
INTERPOLANT = np.array(
    [
        [1.0, -2.763706197274826, 2.9132554618219126, -1.0530884977290216],
        [0.0, 0.1317, -0.2234, 0.1017],
        [0.0, 3.9302962368947516, -5.941033872131505, 2.490627285651253],
        [0.0, -12.411077166933676, 30.33818863028232, -16.548102889244902],
        [0.0, 37.50931341651104, -88.1789048947664, 47.37952196281928],
        [0.0, -27.896526289197286, 65.09189467479366, -34.87065786149661],
        [0.0, 1.5, -4.0, 2.5],
    ]
)
SAFETY, LEAST_FACTOR, LARGEST_FACTOR, ORDER = 0.9, 0.2, 10.0, 5


class Tolerances(NamedTuple):
    """Tolerances of the step size control, relative and absolute."""

    rtol: float
    atol: float


class Problems(NamedTuple):
    """B initial-value problems dx/dt = rate(x).

    Attributes
    ----------
    rate
        Called with x (n, D) and the numbers of these problems, shape (n,); returns dx/dt.
    observe
        A linear function of x, called likewise; returns (n, O).
    start
        x at time 0, shape (B, D).
    """

    rate: Callable[[np.ndarray, np.ndarray], np.ndarray]
    observe: Callable[[np.ndarray, np.ndarray], np.ndarray]
    start: Float[np.ndarray, "problems numbers"]


def integrate_problems(
    problems: Problems,
    times: Float[np.ndarray, " times"],
    end_time: float,
    tolerances: Tolerances,
    *,
    first_step: float | None = None,
    at_rest: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The observed at `times` (B, T, O), and where each problem ends: x (B, D), when (B,), dx/dt (B, D).

    A problem ends at `end_time`, or after a step with max|dx/dt| < `at_rest`, and stays there. `first_step` is chosen
    by the size of x and dx/dt where it is not given.

    Raises
    ------
    InputError
        If a million steps do not suffice.
    """
    rate, observe, x = problems.rate, problems.observe, problems.start.copy()
    lanes = np.arange(len(x))
    slope, now = rate(x, lanes), np.zeros(len(x))
    observed = np.repeat(observe(x, lanes)[:, None], len(times), axis=1)
    end, when, end_slope = x.copy(), now.copy(), slope.copy()
    step = _first_step(x, slope, tolerances) if first_step is None else np.full(len(x), first_step)
    for _ in range(MAX_STEPS):
        moving = (now < end_time) & (np.abs(slope).max(1) >= at_rest)
        if not moving.all():
            x, slope, now, step, lanes = (values[moving] for values in (x, slope, now, step, lanes))
        if not len(lanes):
            stays = times > when[:, None]
            return (
                np.where(stays[..., None], observe(end, np.arange(len(end)))[:, None], observed),
                end,
                when,
                end_slope,
            )
        last = now + step >= end_time
        taken = np.where(last, end_time - now, step)
        after, k = runge_kutta(lambda y, stage, lanes=lanes: rate(y, lanes), x, slope, taken[:, None])
        error = _error(x, after, k, taken[:, None], tolerances)
        kept = error < 1
        then = np.where(last, end_time, now + taken)
        _observe(observe, observed, times, (lanes, x, k, now, then, kept))
        with np.errstate(divide="ignore"):
            factor = SAFETY * error ** (-1 / ORDER)
        step = taken * np.where(kept, np.clip(factor, 1, LARGEST_FACTOR), np.clip(factor, LEAST_FACTOR, SAFETY))
        x, slope = np.where(kept[:, None], after, x), np.where(kept[:, None], k[-1], slope)
        now = np.where(kept, then, now)
        end[lanes], when[lanes], end_slope[lanes] = x, now, slope
    raise InputError(f"time {end_time:g} is not reached in {MAX_STEPS:,} steps: expected an earlier one")


def _first_step(x: np.ndarray, slope: np.ndarray, tolerances: Tolerances) -> np.ndarray:
    """Small against the time in which x changes; the control finds the rest (Hairer, Nørsett, Wanner, II.4)."""
    scale = tolerances.atol + tolerances.rtol * np.abs(x)
    size, speed = (np.sqrt(((values / scale) ** 2).mean(1)) for values in (x, slope))
    return np.where((size > 1e-5) & (speed > 1e-5), 0.01 * size / np.maximum(speed, 1e-5), 1e-6)


def runge_kutta(
    rate: Callable[[np.ndarray, int], np.ndarray], x: np.ndarray, slope: np.ndarray, step: float | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """x after one step and the slopes at the seven stages (7, n, D); `rate` is told the number of the stage."""
    k = np.empty((len(STAGES) + 1, *x.shape))
    k[0] = slope
    after = x
    for stage, weights in enumerate(STAGES, 1):
        after = (weights @ k[:stage].reshape(stage, -1)).reshape(x.shape)
        after *= step
        after += x
        k[stage] = rate(after, stage)
    return after, k


def _error(
    x: np.ndarray, after: np.ndarray, k: np.ndarray, step: np.ndarray, tolerances: Tolerances
) -> Float[np.ndarray, " problems"]:
    """The error of a step in units of the tolerance; a step to where nothing is finite is one that is too long."""
    error = step * (ERROR @ k.reshape(len(k), -1)).reshape(x.shape)
    error /= tolerances.atol + tolerances.rtol * np.maximum(np.abs(x), np.abs(after))
    return np.nan_to_num(np.sqrt(np.square(error).mean(1)), nan=np.inf)


def _observe(observe: Callable, observed: np.ndarray, times: np.ndarray, step: tuple[np.ndarray, ...]) -> None:
    """Fill in the times that lie within the steps that were kept."""
    lanes, x, k, now, then, kept = step
    within = kept[:, None] & (times > now[:, None]) & (times <= then[:, None])
    for row in np.flatnonzero(within.any(1)):
        length = then[row] - now[row]
        powers = ((times[within[row]] - now[row]) / length)[:, None] ** np.arange(1, INTERPOLANT.shape[1] + 1)
        values = observe(np.concatenate([x[row : row + 1], k[:, row]]), np.repeat(lanes[row], len(k) + 1))
        observed[lanes[row], within[row]] = values[0] + length * (powers @ INTERPOLANT.T @ values[1:])
