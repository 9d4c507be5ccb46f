"""Lines and points drawn into axes, by the labels of the legend."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer


def points(axes: Axes, label: str) -> np.ndarray:
    """x and y of the line or the error bars with this label, the latter with their low and high ends."""
    for one in axes.containers:
        if one.get_label() == label and isinstance(one, ErrorbarContainer):
            ends = [segment[:, 1] if len(segment) else [np.nan] * 2 for segment in one.lines[2][0].get_segments()]
            return np.column_stack([one.lines[0].get_xydata(), ends])
    (line,) = (line for line in axes.lines if line.get_label() == label)
    return line.get_xydata()


def band(axes: Axes, number: int = 0) -> np.ndarray:
    """The lower and the upper end of a band at each x."""
    corners = axes.collections[number].get_paths()[0].vertices
    return np.array([[f(corners[corners[:, 0] == x, 1]) for f in (min, max)] for x in np.unique(corners[:, 0])])


def rows(axes: Axes, number: int = 0) -> np.ndarray:
    """The ends of the horizontal bars of a forest plot; NaN where there is none."""
    segments = axes.collections[number].get_segments()
    return np.array([segment[:, 0] if len(segment) else [np.nan] * 2 for segment in segments])


def labels(axes: Axes) -> list[str]:
    """The entries of the legend."""
    return axes.get_legend_handles_labels()[1]


def ticks(axes: Axes, side: str = "y") -> list[str]:
    """The texts at the ticks of an axis."""
    return [text.get_text() for text in getattr(axes, f"get_{side}ticklabels")()]


def notes(axes: Axes) -> list[str]:
    """The texts in the axes, each on one line."""
    return [" ".join(text.get_text().split()) for text in axes.texts if text.get_text()]
