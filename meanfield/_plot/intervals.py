"""Intervals, as bars of points and as the rows of a forest plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield.toolbox._intervals import wilson_interval

Values = np.ndarray | xr.DataArray | float
MARGIN = 0.05  # of the width of a forest plot
MANY_ROWS = 10


def error_bars(axes: Axes, x: Values, value: Values, low: Values, high: Values, **style: Any) -> None:
    """Points with vertical bars from `low` to `high`."""
    value = np.asarray(value, dtype=float)
    # Rounding may put an end on the wrong side of its point.
    distance = np.clip([value - low, high - value], 0, None)
    points = {} if "fmt" in style else {"linestyle": "none", "marker": "o"}
    axes.errorbar(x, value, yerr=distance, **{"capsize": 2, **points, **style})


def wilson(share: Values, trials: Values, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's interval of a probability, from the share of successes among these trials; NaN without trials."""
    return wilson_interval(np.asarray(share) * np.asarray(trials), np.asarray(trials), level)


def forest(
    axes: Axes,
    rows: np.ndarray,
    estimate: Values,
    low: np.ndarray,
    high: np.ndarray,
    limits: tuple[float, float],
    **style: Any,
) -> None:
    """An estimate with its interval in each row, from `limits` on the left to the right.

    An end beyond the limits, such as an infinite one, is an arrow at the limit. An interval of NaN is not drawn.
    """
    left, right = limits
    ends = np.clip([low, high], left, right)
    (points,) = axes.plot(estimate, rows, **{"linestyle": "none", "marker": "o", **style})
    label = {"color": points.get_color(), "linewidth": 1.5}
    axes.hlines(rows, *ends, **label)
    for marker, end, limit, beyond in (("<", ends[0], left, low < left), (">", ends[1], right, high > right)):
        if beyond.any():
            arrows = {"marker": marker, "color": points.get_color(), "linestyle": "none", "clip_on": False}
            axes.plot(np.where(beyond, limit, end)[beyond], rows[beyond], **arrows)


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Names of the rows of a forest plot; the first row is on top."""
    axes.set_yticks(range(len(names)), names)
    if len(names) > MANY_ROWS:
        axes.tick_params(axis="y", labelsize="small")
    axes.set_ylim(len(names) - 0.5, -0.5)


def limits_of(*values: Values) -> tuple[float, float]:
    """Limits that hold all finite values, with a margin."""
    every = np.concatenate([np.ravel(one) for one in values]).astype(float)
    every = every[np.isfinite(every)]
    low, high = (every.min(), every.max()) if every.size else (0.0, 1.0)
    margin = MARGIN * (high - low) or 1.0
    return float(low - margin), float(high + margin)
