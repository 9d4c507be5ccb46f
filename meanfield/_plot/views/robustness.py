"""The part of each conclusion that the ways of asking a model explain."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.intervals import name_rows
from meanfield._plot.registry import draws
from meanfield._plot.words import NEUTRAL, PALETTE
from meanfield.toolbox._errors import InputError

HEIGHT = 0.7  # of a bar
SEEN = 1e-3  # a narrower part is no bar


@draws(
    "robustness",
    view="explained",
    reads="conclusion: conclusion lowest highest; part: part; conclusion part: explained",
)
def explained(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The part of the variance of each conclusion that each factor explains, with its range over all combinations."""
    if part["explained"].isnull().all():
        raise InputError("result has no number in explained: expected one at least")
    rows, left = np.arange(part.sizes["conclusion"]), np.zeros(part.sizes["conclusion"])
    for number, name in enumerate(part["part"].values):
        width = part["explained"].transpose("conclusion", "part").values[:, number]
        if not (width > SEEN).any():
            continue
        colour = NEUTRAL if name == "interactions" else PALETTE[number % len(PALETTE)]
        axes.barh(rows, width, **{"left": left, "height": HEIGHT, "color": colour, "label": str(name), **style})
        left = left + np.nan_to_num(width)
    name_rows(axes, [_name(part.isel(conclusion=row)) for row in rows])
    axes.set_xlim(0, 1)
    axes.set_xlabel("part of the variance over all combinations")


def _name(one: xr.Dataset) -> str:
    """A conclusion and its range; NaN where no combination has it."""
    name = str(one["conclusion"].item()).replace("_", " ")
    low, high = one["lowest"].item(), one["highest"].item()
    if np.isnan(low):
        return f"{name}\nthere is none"
    return f"{name}\n{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{name}\n{low:.3g} to {high:.3g}"
