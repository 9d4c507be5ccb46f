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


@draws(
    "flag_game_fields",
    view="map",
    reads="left top: field; bin: low high; row column channel: flag?; left: left; top: top",
)
def field_map(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The field of each crop as a dot in the middle of the crop, on the flag."""
    table = part["field"].to_series().dropna().reset_index()
    x, y = _middles(part, table["left"].to_numpy(), table["top"].to_numpy())
    _dots(axes, part, (x, y), table["field"].to_numpy(), SIGNED, _scale(part), _field_label(part), **style)


@draws("flag_game_fields", view="distribution", reads="bin: low high probability; : surely_rival surely_truth")
def distribution(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The fraction of crops by field; infinite fields have hatched bars beside the others."""
    low, high = part["low"].values, part["high"].values
    scale = _scale(part)
    look = {"edgecolor": "black", "linewidth": 0.5}
    shades = SIGNED(scale((low + high) / 2))
    axes.bar(low, part["probability"], high - low, align="edge", **{"color": shades, **look, **style})
    axes.margins(x=0.02)
    ticks = [(tick, f"{tick:g}".replace("-", "−")) for tick in axes.get_xticks() if low[0] <= tick <= high[-1]]
    span = high[-1] - low[0]
    beyond = (("surely_rival", low[0] - 0.12 * span, "−∞", 0.0), ("surely_truth", high[-1] + 0.12 * span, "+∞", 1.0))
    for name, place, text, end in beyond:
        if part[name] > 0:
            bar = {"color": SIGNED(end), "hatch": "//", **look, **style}
            axes.bar(place, part[name], 0.05 * span, **bar)
            ticks.append((place, text))
    axes.set_xticks(*zip(*ticks, strict=True))
    axes.set_xlabel(_field_label(part))
    axes.set_ylabel("fraction of crops P(h)")


@draws("flag_game_probe", view="difference", reads="crop: left top difference departs; row column channel: flag?")
def difference(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The measured share less the ideal observer's probability of each crop, with rings where the two differ."""
    label = "measured - ideal"
    _probe(axes, part, "difference", SIGNED, Normalize(-1, 1), label, **style)
    departs = part["departs"].values.astype(bool)
    x, y = _middles(part, part["left"].values, part["top"].values)
    rings = {"markersize": RING, "fillstyle": "none", "color": "black", "markeredgewidth": 0.8}
    axes.plot(x[departs], y[departs], "o", **rings)
    level = 100 * part.attrs["option_level"]
    axes.set_xlabel(f"{departs.sum()} of {departs.size} differ (rings, {level:g} %)")


@draws("flag_game_probe", view="ideal", reads="crop: left top ideal; row column channel: flag?")
def ideal(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The ideal observer's probability of the truth for each crop, on the flag."""
    _probe(axes, part, "ideal", SHARE, Normalize(0, 1), f"ideal observer's p({part.attrs['truth']})", **style)


@draws("flag_game_probe", view="measured", reads="crop: left top measured; row column channel: flag?")
def measured(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The measured share of answers that are the truth for each crop, on the flag."""
    _probe(axes, part, "measured", SHARE, Normalize(0, 1), f"share of answers {part.attrs['truth']}", **style)


def _probe(
    axes: Axes, part: xr.Dataset, name: str, shades: Colormap, scale: Normalize, label: str, **style: Any
) -> None:
    places = _middles(part, part["left"].values, part["top"].values)
    _dots(axes, part, places, part[name].values, shades, scale, label, **style)


def _dots(
    axes: Axes,
    part: xr.Dataset,
    places: tuple[np.ndarray, np.ndarray],
    values: np.ndarray,
    shades: Colormap,
    scale: Normalize,
    label: str,
    **style: Any,
) -> None:
    """The flag, where the result has its picture, and a dot with the colour of its value at each place."""
    width, height = part.attrs["canvas_width"], part.attrs["canvas_height"]
    if "flag" in part:
        axes.imshow(part["flag"].transpose("row", "column", "channel"), extent=(0, width, height, 0), alpha=0.55)
    values = np.clip(values, scale.vmin, scale.vmax)  # a scatter leaves infinite values out
    look = {"s": DOT, "cmap": shades, "norm": scale, "edgecolors": "black", "linewidth": 0.35, **style}
    dots = axes.scatter(*places, c=values, **look)
    axes.figure.colorbar(dots, ax=axes, label=label, location="bottom", shrink=0.8, aspect=30)
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(True)


def _middles(part: xr.Dataset, left: np.ndarray, top: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The middles of crops with these corners."""
    return left + part.attrs["crop_width"] / 2, top + part.attrs["crop_height"] / 2


def _scale(part: xr.Dataset) -> Normalize:
    """The scale of colours of all finite fields, with 0 in its middle."""
    most = float(np.abs([part["low"].min(), part["high"].max()]).max())
    return Normalize(-most, most)


def _field_label(part: xr.Dataset) -> str:
    return f"h = log p({part.attrs['truth']})/p({part.attrs['rival']})"
