"""Confidence intervals."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from meanfield.toolbox._arguments import check_level
from meanfield.toolbox._errors import InputError

Numbers = np.ndarray | np.generic | float | int


def wilson_interval(successes: Numbers, trials: Numbers, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's score interval (low, high) for a probability, elementwise over `successes` and `trials`.

    It holds also where all or none of the trials succeed, unlike mean ± z·SE; without trials it is NaN. Source: Wilson
    1927, J. Am. Stat. Assoc. 22, 209.

    Raises
    ------
    InputError
        If there are more successes than trials or fewer than 0, or `level` is out of range.

    Examples
    --------
    >>> low, high = validation.comparison.wilson_interval(np.array([0, 30, 60]), 60, 0.95)
    >>> low.round(3), high.round(3)
    (array([0.   , 0.377, 0.94 ]), array([0.06 , 0.623, 1.   ]))
    """
    if ((np.asarray(successes) < 0) | (np.asarray(successes) > np.asarray(trials))).any():  # NaN is unknown
        raise InputError(f"successes = {successes}: expected numbers from 0 to trials = {trials}")
    check_level(level)
    z, trials = ndtri((1 + level) / 2), np.asarray(trials, dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.asarray(successes) / trials
        centre = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
        half = z / (1 + z**2 / trials) * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    # At the ends the interval reaches 0 or 1 exactly; the subtraction leaves a rounding error there.
    low = np.where(share == 0, 0.0, centre - half)
    high = np.where(share == 1, 1.0, centre + half)
    return low, high
