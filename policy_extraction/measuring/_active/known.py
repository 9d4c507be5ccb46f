"""Knowledge of a goal."""

from __future__ import annotations

from typing import NamedTuple

from policy_extraction.measuring._active.goals import Quantity


class Known(NamedTuple):
    """Value, interval and doubt of a goal.

    `low` and `high` bound it; `confidence` is the chance that the strong word is the one named, NaN without draws.
    `exact` says whether draws of the posterior were analysed, or only their differences to first order.
    """

    quantity: Quantity
    low: float
    high: float
    confidence: float
    exact: bool
