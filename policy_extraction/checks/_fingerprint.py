"""The mark of a filter on a policy: no probability between almost 0 and the least one that the filter keeps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NEXT_TO_NOTHING = 1e-12  # below it are the zeros of filters and their substitutes, such as 2.2e-16
LEAST_VALUES = 3  # different values from which the hazard rate is estimated


class Gap(NamedTuple):
    """The gap between almost 0 and the lowest other probability."""

    zeros: int  # probabilities below the gap
    edge: float  # the lowest probability above it
    log10_p: float  # log10 of an upper bound for the probability of the gap; NaN if too little is known


def find_gap(q: np.ndarray) -> Gap:
    """The gap near 0 in the probabilities of all words, and a bound of its probability; `q` has any shape.

    Let s = -log(q / (1 - q)) > 0 for the probabilities below 1/2. The null hypothesis is a log-concave density of s, as
    normal, logistic and exponential distributions have it. Then the hazard rate of s (density at s over the share of
    values beyond s) does not fall, and a value that passes the edge s_1 of the gap has to end soon. Take the half of
    the values closest to the gap, from s_0 to s_1, with k + 1 different ones, and the n zeros beyond. Per length of s
    passed, values end at least as often in the gap as before it. They passed τ = Σ (s - s_0) + n (s_1 - s_0) before the
    gap and τ' = n · (width of the gap) in it. So the probability that all k values besides the one at the edge ended
    before the gap is at most (τ / (τ + τ'))^k. Equal values count once, because language models compute with few
    digits.

    The test can't tell a filter from a model that is either certain to within 1e-12 or far from certain.
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
    """Whether all probabilities are multiples of 1/n, as if one word were certain in each of n orders."""
    return bool(np.abs(q * n_orders - (q * n_orders).round()).max() < 1e-9)


def _logit(q: np.ndarray) -> np.ndarray:
    return np.log(q) - np.log1p(-q)
