"""Endpoints of flag games: their colours, and their fractions against the number of agents."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from meanfield._plot.intervals import error_bars
from meanfield._plot.scales import show_shares, show_sizes

COLOURS = {
    "correct_consensus": "#0072b2",
    "wrong_consensus": "#d55e00",
    "polarization": "#e69f00",
    "fragmentation": "#999999",
}


def endpoint_name(endpoint: object) -> str:
    """An endpoint, or another column, in words."""
    return str(endpoint).replace("_", " ")


def draw_fractions(
    axes: Axes, sizes: np.ndarray, fractions: dict[str, np.ndarray], ends: dict[str, np.ndarray] | None, **style: Any
) -> None:
    """Fractions of runs by endpoint, and bars between their `ends` (sizes, 2) if there are any."""
    for name, fraction in fractions.items():
        look = {"color": COLOURS[name], "label": endpoint_name(name), **style}
        if ends is None:
            axes.plot(sizes, fraction, **{"marker": "o", **look})
        else:
            error_bars(axes, sizes, fraction, *ends[name].T, **{"linestyle": "-", **look})
    show_sizes(axes, sizes)
    show_shares(axes, "fraction of runs")
