"""Ends of trajectories: whether one that has not come to rest is periodic."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from meanfield._population.mixture import Blocks, Edges, Groups, Mixture
from meanfield._population.trajectories import STEADY_RESIDUAL, Tolerances, Trajectories, integrate

STEADY = "steady"
LIMIT_CYCLE = "limit cycle"
SLOW_TRANSIENT = "slow transient"

# Observation windows: the longer one is for slow cycles, too few of which fit into the shorter one
WINDOWS = (np.linspace(0.0, 200.0, 2001), np.linspace(0.0, 2000.0, 2001))
# Word shares of smaller amplitude are errors of a tolerance of 1e-8.
SMALLEST_AMPLITUDE = 1e-6
# An oscillation that loses no more than this from one half of the time of observation to the other counts as sustained.
LOSS = 0.01


def follow(
    mixtures: Mixture | Blocks | Edges | Groups,
    starts: Float[np.ndarray, "populations starts ..."],
    times: Float[np.ndarray, " times"],
    max_time: float,
    tolerances: Tolerances,
) -> tuple[Trajectories, np.ndarray, np.ndarray]:
    """The solutions, as `integrate` has them, their outcomes, and periods of limit cycles (else NaN)."""
    trajectories = integrate(mixtures, starts, times, max_time, tolerances)
    moving = trajectories.residual >= STEADY_RESIDUAL
    outcome = np.full(moving.shape, STEADY, dtype=object)
    period = np.full(moving.shape, np.nan)
    for p in np.flatnonzero(moving.any(1)):
        alone = type(mixtures)(*(values[p : p + 1] for values in mixtures))
        compositions = trajectories.composition[p : p + 1, moving[p]]
        outcome[p, moving[p]], period[p, moving[p]] = _watch(alone, compositions, tolerances)
    return trajectories, outcome, period


def _watch(
    alone: Mixture | Blocks | Edges | Groups, compositions: np.ndarray, tolerances: Tolerances
) -> tuple[np.ndarray, np.ndarray]:
    """Outcome and period for one population from each composition; a second, longer window decides open cases."""
    number = compositions.shape[1]
    outcome, period = np.full(number, SLOW_TRANSIENT, dtype=object), np.full(number, np.nan)
    for times in WINDOWS:
        shares = integrate(alone, compositions, times, times[-1], tolerances).word_share[0]
        for i in np.flatnonzero(outcome == SLOW_TRANSIENT):
            outcome[i], period[i] = recurrence(times, shares[i])
        if not any(turns(shares[i]) for i in np.flatnonzero(outcome == SLOW_TRANSIENT)):
            break
    return outcome, period


def recurrence(times: Float[np.ndarray, " times"], word_share: Float[np.ndarray, "times words"]) -> tuple[str, float]:
    """'limit cycle' and its period if the word share at equidistant times is periodic, else 'slow transient' and NaN.

    It is periodic if the word that varies most crosses the middle of its range upwards at least three times, at
    intervals that agree to 1 %, and if its amplitudes in both halves of the time agree to 1 %.
    """
    share = _widest(word_share)
    halves = [np.ptp(half) for half in np.array_split(share, 2)]
    if min(halves) < SMALLEST_AMPLITUDE or abs(halves[1] - halves[0]) > LOSS * max(halves):
        return SLOW_TRANSIENT, np.nan
    above = share - (share.max() + share.min()) / 2
    rises = np.flatnonzero((above[:-1] < 0) & (above[1:] >= 0))
    when = times[rises] + (times[1] - times[0]) * above[rises] / (above[rises] - above[rises + 1])
    periods = np.diff(when)
    if len(periods) < 2 or np.ptp(periods) > LOSS * periods.mean():
        return SLOW_TRANSIENT, np.nan
    return LIMIT_CYCLE, float(periods.mean())


def turns(word_share: Float[np.ndarray, "times words"]) -> bool:
    """Whether the word that varies most turns back at least once, by more than the tolerance of the solver."""
    share = _widest(word_share)
    highest, lowest = np.maximum.accumulate(share), np.minimum.accumulate(share)
    return bool(min((highest - share).max(), (share - lowest).max()) > SMALLEST_AMPLITUDE)


def _widest(word_share: np.ndarray) -> np.ndarray:
    return word_share[:, np.argmax(np.ptp(word_share, axis=0))]
