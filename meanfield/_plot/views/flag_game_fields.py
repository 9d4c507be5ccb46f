"""Crops of a flag: their fields and a probe of them on the flag's picture, and the distribution of fields."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize

from meanfield._plot.registry import draws

# As in [002]: red favours the rival, white is ambiguous, blue favours the truth.
SIGNED = mpl.colormaps["RdBu"]
SHARE = mpl.colormaps["viridis"]
DOT, RING = 20, 7.5  # area of a dot and diameter of a ring around it, in points
ON_FLAG = "row column channel: flag?"


@draws("flag_game_fields", view="map", reads=f"left! top!: field; bin: low high; {ON_FLAG}")
def field_map(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The field of each crop as a dot in the middle of the crop, on the flag."""
    crops = part.stack(crop=["left", "top"]).dropna("crop", subset=["field"])
    _dots(axes, crops, "field", SIGNED, _scale(part), _field_label(part), **style)


@draws("flag_game_fields", view="distribution", reads="bin: low high probability; : surely_rival surely_truth")
def distribution(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The fraction of crops by field; infinite fields have hatched bars beside the others."""
    low, high, scale = part["low"].values, part["high"].values, _scale(part)
    look = {"edgecolor": "black", "linewidth": 0.5}
    shades = SIGNED(scale((low + high) / 2))
    axes.bar(low, part["probability"], high - low, align="edge", **{"color": shades, **look, **style})
    axes.margins(x=0.02)
    ticks = [(tick, f"{tick:g}".replace("-", "−")) for tick in axes.get_xticks() if low[0] <= tick <= high[-1]]
    span = high[-1] - low[0]
    beyond = (("surely_rival", low[0] - 0.12 * span, "−∞", 0.0), ("surely_truth", high[-1] + 0.12 * span, "+∞", 1.0))
    for name, place, text, end in beyond:
        if part[name] > 0:
            axes.bar(place, part[name], 0.05 * span, **{"color": SIGNED(end), "hatch": "//", **look, **style})
            ticks.append((place, text))
    axes.set_xticks(*zip(*ticks, strict=True))
    axes.set(xlabel=_field_label(part), ylabel="fraction of crops P(h)")


@draws("flag_game_probe", view="difference", reads=f"crop: left top difference departs; {ON_FLAG}")
def difference(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The measured share minus the ideal observer's probability of each crop, with rings where the two differ."""
    x, y = _dots(axes, part, "difference", SIGNED, Normalize(-1, 1), "measured - ideal", **style)
    departs = part["departs"].values.astype(bool)
    rings = {"markersize": RING, "fillstyle": "none", "color": "black", "markeredgewidth": 0.8}
    axes.plot(x[departs], y[departs], "o", **rings)
    level = 100 * part.attrs["option_level"]
    axes.set_xlabel(f"{departs.sum()} of {departs.size} differ (rings, {level:g} %)")


@draws("flag_game_probe", view="ideal", reads=f"crop: left top ideal; {ON_FLAG}")
def ideal(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The ideal observer's probability of the truth for each crop, on the flag."""
    _dots(axes, part, "ideal", SHARE, Normalize(0, 1), f"ideal observer's p({part.attrs['truth']})", **style)


@draws("flag_game_probe", view="measured", reads=f"crop: left top measured; {ON_FLAG}")
def measured(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The measured share of answers that are the truth for each crop, on the flag."""
    _dots(axes, part, "measured", SHARE, Normalize(0, 1), f"share of answers {part.attrs['truth']}", **style)


def _dots(
    axes: Axes, part: xr.Dataset, name: str, shades: Colormap, scale: Normalize, label: str, **style: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The flag, where the result has its picture, and in the middle of each crop a dot in the colour of its value.

    Returns the places of the dots.
    """
    width, height = part.attrs["canvas_width"], part.attrs["canvas_height"]
    if "flag" in part:
        axes.imshow(part["flag"], extent=(0, width, height, 0), alpha=0.55)
    x, y = part["left"].values + part.attrs["crop_width"] / 2, part["top"].values + part.attrs["crop_height"] / 2
    values = part[name].clip(scale.vmin, scale.vmax)  # a scatter leaves infinite values out
    look = {"s": DOT, "cmap": shades, "norm": scale, "edgecolors": "black", "linewidth": 0.35, **style}
    dots = axes.scatter(x, y, c=values, **look)
    axes.figure.colorbar(dots, ax=axes, label=label, location="bottom", shrink=0.8, aspect=30)
    axes.set(xlim=(0, width), ylim=(height, 0), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    return x, y


def _scale(part: xr.Dataset) -> Normalize:
    """The scale of colours of all finite fields, with 0 in its middle."""
    most = float(np.abs([part["low"].min(), part["high"].max()]).max())
    return Normalize(-most, most)


def _field_label(part: xr.Dataset) -> str:
    return f"h = log p({part.attrs['truth']})/p({part.attrs['rival']})"
