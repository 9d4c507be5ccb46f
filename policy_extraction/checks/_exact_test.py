"""Exact tests of counts against probabilities, and the probability of their false alarms.

A count has few possible values, so under the tested hypothesis fewer than 5 % of p-values are below 0.05. The exact
share follows from the probabilities alone.
"""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy

from meanfield import InputError

MOST_OUTCOMES = 200_000
# Rounding must not separate outcomes of equal probability; SciPy's binomtest has the same value.
TIE = 1e-7


class Tested(NamedTuple):
    """One p-value a row, and the probability that it is below `level` if the hypothesis is true; shape (rows,)."""

    p_value: np.ndarray
    alarm_chance: np.ndarray


def exact_test(counts: np.ndarray, q: np.ndarray, level: float) -> Tested:
    """Exact multinomial test of each row; for two words the two-sided exact binomial test.

    The p-value is the probability, under `q`, of all outcomes that are at most as probable as the observed one. A
    p-value below `level` is an alarm. `counts` have shape (rows, W) and the same sum n in each row, and so have the
    probabilities `q`, whose rows sum to 1.
    """
    n, n_words = int(counts[0].sum()), counts.shape[1]
    outcomes = _outcomes(n, n_words)
    log_coefficient = _log_coefficient(outcomes)
    p_values, chances = np.empty((2, len(counts)))
    for row, (count, probability) in enumerate(zip(counts, q, strict=True)):
        mass = np.exp(log_coefficient + xlogy(outcomes, probability).sum(-1))
        observed = np.exp(_log_coefficient(count) + xlogy(count, probability).sum())
        p_values[row] = _at_most_as_probable(mass, observed)
        chances[row] = mass[_at_most_as_probable(mass, mass) < level].sum()
    return Tested(p_values, chances)


def _at_most_as_probable(mass: np.ndarray, than: np.ndarray) -> np.ndarray:
    """The total probability of all outcomes, of probabilities `mass`, that are at most as probable as `than`."""
    rising = np.sort(mass)
    cumulated = np.concatenate([[0.0], np.cumsum(rising)])
    return np.minimum(cumulated[np.searchsorted(rising, than * (1 + TIE), side="right")], 1.0)


def check_outcomes(n: int, n_words: int) -> None:
    """InputError if n draws of W words have too many outcomes to enumerate."""

    def outcomes(draws: int) -> int:
        return comb(draws + n_words - 1, n_words - 1)

    if outcomes(n) > MOST_OUTCOMES:
        most = 1
        while outcomes(most + 1) <= MOST_OUTCOMES:
            most += 1
        raise InputError(f"n = {n}: expected at most {most} for an exact test of {n_words} words")


def _outcomes(n: int, n_words: int) -> np.ndarray:
    """All ways to share n draws among the words, shape (outcomes, W)."""
    shared = np.zeros((1, 0), dtype=np.int64)
    for _ in range(n_words - 1):
        left = n - shared.sum(-1)
        rows = np.repeat(np.arange(len(shared)), left + 1)
        first = np.concatenate([[0], np.cumsum(left + 1)[:-1]])
        shared = np.column_stack([shared[rows], np.arange(len(rows)) - first[rows]])
    return np.column_stack([shared, n - shared.sum(-1)])


def _log_coefficient(counts: np.ndarray) -> np.ndarray:
    return gammaln(counts.sum(-1) + 1) - gammaln(counts + 1).sum(-1)


def count_interval(chances: np.ndarray, level: float) -> tuple[int, int]:
    """The central interval of the number of independent events with these probabilities, which is Poisson-binomial.

    Each tail outside has at most (1 - level)/2.
    """
    law = np.ones(1)
    for chance in chances:
        law = np.convolve(law, [1 - chance, chance])
    tail = (1 - level) / 2
    cumulated = np.cumsum(law)
    low = int(np.searchsorted(cumulated, tail, side="right"))
    high = int(np.searchsorted(cumulated, 1 - tail))
    return low, min(high, len(chances))
