"""Intervals, as bars of points and as the rows of a forest plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from meanfield.toolbox._intervals import wilson_interval

Values = Any  # numbers as matplotlib takes them, also labelled ones
MARGIN = 0.05  # of the width of a forest plot
MANY_ROWS = 10


def error_bars(axes: Axes, x: Values, value: Values, *ends: Values, **style: Any) -> None:
    """Points with vertical bars between two `ends`, low and high, or of one standard error each way."""
    value = np.asarray(value, dtype=float)
    # Rounding may put an end on the wrong side of its point.
    distance = np.clip([value - ends[0], ends[1] - value], 0, None) if len(ends) == 2 else np.asarray(ends[0])
    points = {} if "fmt" in style else {"linestyle": "none", "marker": "o"}
    axes.errorbar(x, value, yerr=distance, **{"capsize": 2, **points, **style})


def wilson(share: Values, trials: Values, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's interval of a probability, from the share of successes among these trials; NaN without trials."""
    return wilson_interval(np.asarray(share) * np.asarray(trials), np.asarray(trials), level)


def forest(
    axes: Axes,
    rows: Values,
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
    rows, ends = np.asarray(rows), np.clip([low, high], left, right)
    (points,) = axes.plot(estimate, rows, **{"linestyle": "none", "marker": "o", **style})
    axes.hlines(rows, *ends, color=points.get_color(), linewidth=1.5)
    for marker, limit, beyond in (("<", left, low < left), (">", right, high > right)):
        if beyond.any():
            arrows = {"marker": marker, "color": points.get_color(), "linestyle": "none", "clip_on": False}
            axes.plot(np.full(beyond.sum(), limit), rows[beyond], **arrows)


def name_rows(axes: Axes, names: Sequence[str], **labels: Any) -> None:
    """Names of the rows of a forest plot, the first row on top; and other labels and limits."""
    axes.set_yticks(range(len(names)), names)
    if len(names) > MANY_ROWS:
        axes.tick_params(axis="y", labelsize="small")
    axes.set(ylim=(len(names) - 0.5, -0.5), **labels)


def limits_of(*values: Values) -> tuple[float, float]:
    """Limits that hold all finite values, with a margin."""
    every = np.concatenate([np.ravel(one) for one in values]).astype(float)
    every = every[np.isfinite(every)]
    low, high = (every.min(), every.max()) if every.size else (0.0, 1.0)
    margin = MARGIN * (high - low) or 1.0
    return float(low - margin), float(high + margin)


def aside(number: int, width: float) -> np.ndarray:
    """Places side by side within this width, for points that would hide each other."""
    return np.linspace(-width / 2, width / 2, number) if number > 1 else np.zeros(number)
