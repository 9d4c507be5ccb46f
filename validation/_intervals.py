"""Confidence intervals."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm


def wilson_interval(successes: np.ndarray, trials: int, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's score interval (low, high) for a probability, elementwise over `successes`.

    Unlike mean ± z·SE it has its level also where all or none of the trials succeed. Source: Wilson 1927, J. Am. Stat.
    Assoc. 22, 209.
    """
    z = norm.ppf((1 + level) / 2)
    share = np.asarray(successes) / trials
    centre = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    # At the ends the interval reaches 0 or 1 exactly; the subtraction leaves a rounding error there.
    low = np.where(share == 0, 0.0, centre - half)
    high = np.where(share == 1, 1.0, centre + half)
    return low, high
