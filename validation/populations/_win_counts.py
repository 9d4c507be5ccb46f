"""The exact test of a number of wins, and its power for every number of runs at once."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.stats import binom

MOST_RUNS = 10_000
NUMBERS = np.arange(MOST_RUNS + 1)


@lru_cache(maxsize=64)
def least_wins(excluded: float, level: float) -> np.ndarray:
    """The fewest wins among 0, 1, … MOST_RUNS runs that call a chance above `excluded`.

    As many wins or more have a probability of at most (1 - level)/2 if the chance is `excluded`. More wins than runs
    mean that so few runs can't call it.
    """
    return binom.isf((1 - level) / 2, NUMBERS, excluded).astype(int) + 1


def power_by_runs(chance: float, excluded: float, level: float, undecided: float) -> np.ndarray:
    """The probability that 0, 1, … MOST_RUNS runs call, to either side, that their chance of a win is not `excluded`.

    Each run is decided with probability 1 - `undecided`; only decided runs are tested.
    """
    above = binom.sf(least_wins(excluded, level) - 1, NUMBERS, chance)
    below = binom.sf(least_wins(1 - excluded, level) - 1, NUMBERS, 1 - chance)
    return _mean_over_decided(above + below, undecided) if undecided else above + below


def fewest_runs(power: np.ndarray, wanted: float) -> float:
    """The number of runs from which on all have the wanted power; infinite if MOST_RUNS have less.

    No runs have the power 0.
    """
    short = np.flatnonzero(power < wanted)
    return float(short[-1] + 1) if short[-1] < MOST_RUNS else np.inf


def _mean_over_decided(power: np.ndarray, undecided: float) -> np.ndarray:
    """Σ_d Binomial(d; n, 1 - undecided) power(d) for each n, where each further run may add a decided one."""
    mean, after = np.empty_like(power), power
    for n in NUMBERS:
        mean[n] = after[0]
        after = undecided * after[:-1] + (1 - undecided) * after[1:]
    return mean
