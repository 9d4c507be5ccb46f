"""The mark that a filter leaves on a policy: no probability between next to nothing and the least that it keeps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NEXT_TO_NOTHING = 1e-12  # below are the zeros of filters and what stands for them, such as 2.2e-16
LEAST_VALUES = 3  # different ones, on which the law of the others is learnt


class Gap(NamedTuple):
    """The gap between what counts as zero and the lowest other probability.

    Attributes
    ----------
    zeros
        How many probabilities lie below the gap.
    edge
        The lowest probability above it.
    log10_p
        Decimal logarithm of a bound of the chance that it is empty; NaN where too little is known.
    """

    zeros: int
    edge: float
    log10_p: float


def find_gap(q: np.ndarray) -> Gap:
    """The gap near 0 in the probabilities of all words (for two words also the one near 1), and how improbable it is.

    Let s = -log(q / (1 - q)) > 0 for the probabilities below 1/2. The null hypothesis is that s has a log-concave
    density, as normal, logistic and exponential laws have. Then its hazard rate (density at s over the share of values
    beyond s) does not fall, and a value that gets past the edge s_1 of the gap has to end soon. Take the half of the
    values that lies closest to the gap, from s_0 to s_1, k + 1 different ones, and the n zeros beyond. Per length of s
    passed, values end at least as often in the gap as before it: they passed τ = Σ (s - s_0) + n (s_1 - s_0) before it
    and τ' = n · (width of the gap) in it. So the chance that all k besides the one at the edge ended before the gap is
    at most (τ / (τ + τ'))^k. Equal values are counted once, since language models compute with few digits.

    It can't tell a filter from a model that is either certain to 1 in 10^12 or far from it.

    Parameters
    ----------
    q
        Probabilities, any shape.
    """
    low = q[q < 0.5]
    zeros = int((low <= NEXT_TO_NOTHING).sum())
    s = np.unique((-_logit(low[low > NEXT_TO_NOTHING])).round(9))
    if not s.size:
        return Gap(zeros, np.nan, np.nan)
    edge = float(low[low > NEXT_TO_NOTHING].min())
    if zeros == 0 or s.size < LEAST_VALUES:
        return Gap(zeros, edge, np.nan)
    start = np.median(s)
    above = s[s > start]
    at_risk = (above - start).sum() + zeros * (s[-1] - start)
    in_gap = zeros * max(0.0, -_logit(np.float64(NEXT_TO_NOTHING)) - s[-1])
    return Gap(zeros, edge, float((above.size - 1) * np.log10(at_risk / (at_risk + in_gap))))


def multiples(q: np.ndarray, n_orders: int) -> bool:
    """Whether all probabilities are multiples of 1/n, as if one word were certain in each of n presentation orders."""
    return bool(np.abs(q * n_orders - (q * n_orders).round()).max() < 1e-9)


def _logit(q: np.ndarray) -> np.ndarray:
    return np.log(q) - np.log1p(-q)
