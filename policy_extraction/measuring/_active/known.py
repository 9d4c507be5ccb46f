"""What is known of a goal."""

from __future__ import annotations

from typing import NamedTuple

from scipy.stats import t as student

from policy_extraction.measuring._active.goals import Quantity
from policy_extraction.measuring._active.held_out import LEVEL


class Known(NamedTuple):
    """What is known of a goal.

    `low` and `high` bound it at the level `LEVEL`; `confidence` is the chance that the strong word is the one named.
    `exact` says whether draws of the posterior were analysed, or only their differences to first order.
    """

    quantity: Quantity
    low: float
    high: float
    confidence: float
    exact: bool


def known_of(quantity: Quantity, spread: float, freedom: float, same: float, exact: bool) -> Known:
    """What is known of a quantity with this standard deviation.

    `freedom` is its number of degrees of freedom and `same` the chance of the same word if κ does not change its sign.
    """
    half = student.ppf((1 + LEVEL) / 2, freedom) * spread
    sign = student.cdf(abs(quantity.value) / spread, freedom) if quantity.name == "kappa" and spread > 0 else 1.0
    low, high = quantity.value - half, quantity.value + half
    if quantity.name == "word_share":
        low, high = max(low, 0.0), min(high, 1.0)
    return Known(quantity, low, high, float(same * sign), exact)
