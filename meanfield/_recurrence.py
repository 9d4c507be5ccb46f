"""Whether a trajectory that has not come to rest repeats itself."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

STEADY = "steady"
LIMIT_CYCLE = "limit cycle"
SLOW_TRANSIENT = "slow transient"

OBSERVED_TIMES = np.linspace(0.0, 200.0, 2001)
# A word share of smaller amplitude is what a tolerance of 1e-8 leaves.
SMALLEST_AMPLITUDE = 1e-6
# An oscillation that loses no more than this from one half of the time of observation to the other counts as sustained.
LOSS = 0.01


def recurrence(word_share: Float[np.ndarray, "times words"]) -> tuple[str, float]:
    """'limit cycle' and its period where the word share at `OBSERVED_TIMES` repeats itself, else 'slow transient', NaN.

    It repeats itself when the word that varies most crosses the middle of its range upwards at least three times, at
    equal intervals to 1 %, and its amplitude in both halves of the time is the same to 1 %.
    """
    course = word_share[:, np.argmax(np.ptp(word_share, axis=0))]
    halves = [np.ptp(half) for half in np.array_split(course, 2)]
    if min(halves) < SMALLEST_AMPLITUDE or abs(halves[1] - halves[0]) > LOSS * max(halves):
        return SLOW_TRANSIENT, np.nan
    above = course - (course.max() + course.min()) / 2
    rises = np.flatnonzero((above[:-1] < 0) & (above[1:] >= 0))
    when = OBSERVED_TIMES[rises] + np.diff(OBSERVED_TIMES)[0] * above[rises] / (above[rises] - above[rises + 1])
    periods = np.diff(when)
    if len(periods) < 2 or np.ptp(periods) > LOSS * periods.mean():
        return SLOW_TRANSIENT, np.nan
    return LIMIT_CYCLE, float(periods.mean())
