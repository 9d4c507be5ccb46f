"""The drift: how fast the number of agents in each state changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.intervals import name_rows
from meanfield._plot.registry import draws
from meanfield._plot.words import NEUTRAL

MOST_ROWS = 24


@draws("drift", view="states", by=("model", "pair", "component"), reads="state: state drift")
def states(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The rate of change of the fraction of agents in each state, a row for each of the 24 that change fastest."""
    rates = part["drift"].values
    fastest = np.sort(np.argsort(-np.abs(np.nan_to_num(rates)), kind="stable")[:MOST_ROWS])
    rows = np.arange(len(fastest))
    axes.axvline(0, color=NEUTRAL, linewidth=0.8)
    points = axes.plot(rates[fastest], rows, **{"linestyle": "none", "marker": "o", "color": "C0", **style})[0]
    axes.hlines(rows, 0, rates[fastest], color=points.get_color(), linewidth=1.5)
    name_rows(axes, [str(state) for state in part["state"].values[fastest]])
    axes.set_ylabel("state" if len(rates) == len(fastest) else f"state, {MOST_ROWS} of {len(rates):,}")
    units = part["drift"].attrs.get("units", "1/1")
    axes.set_xlabel("rate of change of its fraction" + (f" ({units})" if units != "1/1" else ""))
