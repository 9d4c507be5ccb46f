"""The sharpness of runs that were really played: a forest of intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from meanfield._plot.registry import draws
from meanfield._plot.words import NEUTRAL, PALETTE

TICKS = np.array([0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10])


@draws(
    "sharpness",
    view="forest",
    by=(),
    reads="index: of model pair memory_length experiment n_agents initial_consensus committed_word sharpness low high",
)
def forest(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The sharpness of each run, listed below its experiment, with intervals, against the mean of all choices."""
    (dim,) = part["of"].dims
    is_run = part["of"].values == "run"
    names = ("model", "pair", "memory_length", "experiment", "n_agents", "initial_consensus", "committed_word")
    groups = list(zip(*(part[name].values.tolist() for name in names), strict=True))
    place, ticks = 0, []
    for number, group in enumerate(dict.fromkeys(groups)):
        here = np.array([other == group for other in groups])
        colour = PALETTE[number % len(PALETTE)]
        for kind, rows in (("experiment", here & ~is_run), ("run", here & is_run)):
            one = part.isel({dim: rows})
            y = place + np.arange(rows.sum())
            whole = kind == "experiment"
            look = {"color": colour, "marker": "D" if whole else "o", "markersize": 5 if whole else 2.5}
            axes.plot(one["sharpness"], y, **{"linestyle": "none", **look, **style})
            axes.hlines(y, one["low"], one["high"], color=colour, linewidth=2.0 if whole else 0.7)
            ticks += [(place, _name(group))] if whole else []
            place += len(y)
        place += 1
    axes.axvline(1, color=NEUTRAL, linewidth=0.8, zorder=0)
    axes.set_ylim(place - 0.5, -1)
    axes.set_yticks([at for at, _ in ticks], [name for _, name in ticks])
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    shown = TICKS[(low <= TICKS) & (high >= TICKS)]
    axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(f"sharpness β with {100 * part.attrs.get('level', np.nan):g} % interval")


def _name(group: tuple) -> str:
    _, pair, length, experiment, n_agents, initial, committed = group
    start = f", from {initial}" if initial else ""
    minority = f", some say {committed}" if committed else ""
    how = "from empty" if experiment == "from_empty" else ""
    told = f"{how}{start}{minority}".removeprefix(", ")
    return f"{{{pair.replace('/', ', ')}}}, H = {length}, N = {n_agents}, {told}"
