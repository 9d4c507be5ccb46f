"""Confidence intervals."""

from __future__ import annotations

import numpy as np
from scipy.special import betainccinv, betaincinv, ndtri

from meanfield.toolbox._arguments import check_level
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._labels import real_numbers

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
    successes, trials = (real_numbers(x, name) for x, name in ((successes, "successes"), (trials, "trials")))
    try:
        np.broadcast_shapes(successes.shape, trials.shape)
    except ValueError:
        shapes = f"{trials.shape} beside {successes.shape} of successes"
        raise InputError(f"trials has shape {shapes}: expected one that goes with it") from None
    if ((successes < 0) | (successes > trials)).any():  # NaN is unknown
        raise InputError(f"successes = {successes}: expected numbers from 0 to trials = {trials}")
    check_level(level)
    z = ndtri((1 + level) / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = successes / trials
        centre = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
        half = z / (1 + z**2 / trials) * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    # At the ends the interval reaches 0 or 1 exactly; the subtraction leaves a rounding error there.
    low = np.where(share == 0, 0.0, centre - half)
    high = np.where(share == 1, 1.0, centre + half)
    return low, high


def exact_interval(successes: np.ndarray, trials: np.ndarray | int, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The interval (low, high) of Clopper and Pearson, elementwise, which has at least its level for any probability.

    Source: 1934, Biometrika 26, 404.
    """
    tail, failures = (1 - level) / 2, trials - successes
    low = np.where(successes > 0, betaincinv(np.maximum(successes, 1), failures + 1, tail), 0.0)
    high = np.where(failures > 0, betainccinv(successes + 1, np.maximum(failures, 1), tail), 1.0)
    return low, high
