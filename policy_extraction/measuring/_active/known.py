"""Knowledge of a goal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from policy_extraction.measuring._active.goals import Quantity
from policy_extraction.measuring._active.held_out import LEVEL


class Known(NamedTuple):
    """Value, interval and doubt of a goal.

    `low` and `high` bound it at the level `LEVEL`; `confidence` is the chance that the strong word is the one named,
    NaN without draws. `exact` says whether draws of the posterior were analysed, or only their differences to first
    order. `drawn_low` and `drawn_high` are the bounds by the memories alone that were drawn at random, without the
    model.
    """

    quantity: Quantity
    low: float
    high: float
    confidence: float
    exact: bool
    drawn_low: float = -np.inf
    drawn_high: float = np.inf

    @property
    def drawn(self) -> bool:
        """Whether there are enough random memories for bounds."""
        return bool(np.isfinite(self.drawn_high))

    @property
    def agrees(self) -> bool:
        """Whether the random memories allow this value, if they are enough."""
        return not self.drawn or self.drawn_low <= self.quantity.value <= self.drawn_high

    def by_draws(self, bounds: tuple[float, float]) -> Known:
        """The same with these bounds by random memories."""
        low, high = bounds
        if self.quantity.name == "word_share" and np.isfinite(high):
            low, high = np.clip([low, high], 0.0, 1.0).tolist()
        return self._replace(drawn_low=low, drawn_high=high)


def known_of(quantity: Quantity, spread: float, freedom: float, same: float, exact: bool) -> Known:
    """Knowledge of a quantity with this standard deviation.

    `freedom` is its number of degrees of freedom, without any of which nothing is known, and `same` the chance of the
    same word if κ does not change its sign.
    """
    if freedom <= 0:
        return Known(quantity, np.nan, np.nan, 0.0, exact)
    half = student.ppf((1 + LEVEL) / 2, freedom) * spread
    sign = student.cdf(abs(quantity.value) / spread, freedom) if quantity.name == "kappa" and spread > 0 else 1.0
    low, high = quantity.value - half, quantity.value + half
    if quantity.name == "word_share":
        low, high = max(low, 0.0), min(high, 1.0)
    return Known(quantity, low, high, float(same * sign), exact)
