"""Crops of a flag with their fields, and the random-field mean field: phases, bifurcation and solutions."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize

from meanfield._plot.registry import Draw, draws
from meanfield._plot.views.bifurcations import LINES
from meanfield._plot.views.fixed_points import FILLS
from meanfield._plot.words import NEUTRAL, PALETTE
from meanfield.toolbox._errors import InputError

# As in [002]: red favours the rival, white is ambiguous, blue favours the truth.
SIGNED = mpl.colormaps["RdBu"]
SHARE = mpl.colormaps["viridis"]
DOT, RING = 20, 7.5  # area of a dot and diameter of a ring around it, in points
ON_FLAG = "row column channel: flag?"


@draws("flag_game_fields", "map", f"left! top!: field; bin: low high; {ON_FLAG}")
def field_map(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The field of each crop as a dot in the middle of the crop, on the flag."""
    crops = part.stack(crop=["left", "top"]).dropna("crop", subset=["field"])
    _dots(axes, crops, "field", SIGNED, _scale(part), _field_label(part), **style)


@draws("flag_game_fields", "distribution", "bin: low high probability; : surely_rival surely_truth")
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


@draws("flag_game_probe", "difference", f"crop: left top difference departs; {ON_FLAG}")
def difference(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The measured share minus the ideal observer's probability of each crop, with rings where the two differ."""
    x, y = _dots(axes, part, "difference", SIGNED, Normalize(-1, 1), "measured - ideal", **style)
    departs = part["departs"].values.astype(bool)
    rings = {"markersize": RING, "fillstyle": "none", "color": "black", "markeredgewidth": 0.8}
    axes.plot(x[departs], y[departs], "o", **rings)
    level = 100 * part.attrs["option_level"]
    axes.set_xlabel(f"{departs.sum()} of {departs.size} differ (rings, {level:g} %)")


@draws("flag_game_probe", "ideal", f"crop: left top ideal; {ON_FLAG}")
def ideal(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The ideal observer's probability of the truth for each crop, on the flag."""
    _dots(axes, part, "ideal", SHARE, Normalize(0, 1), f"ideal observer's p({part.attrs['truth']})", **style)


@draws("flag_game_probe", "measured", f"crop: left top measured; {ON_FLAG}")
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
        if (channels := part.sizes["channel"]) not in (1, 3, 4):
            raise InputError(f"flag has {channels} channels: expected 1, or 3 of red, green and blue, or 4")
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


PHASES = {
    "bistable": "fraction with truth and rival state",
    "truth_only": "fraction with truth state only",
    "rival_only": "fraction with rival state only",
    "several": "fraction with several states",
    "m": "mean m",
    "q": "mean q",
}


def _phase_view(name: str) -> Draw:
    """A view for one column."""

    def phase(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
        sizes = part["n_agents"].values
        places = np.arange(len(sizes))  # a cell must be as wide for N = 4 as for N = 128
        # m is positive where the truth wins, and blue as in the maps of fields.
        scale = {"cmap": "RdBu", "vmin": -1} if name == "m" else {"cmap": "viridis", "vmin": 0}
        mesh = axes.pcolormesh(places, part["J"], part[name], **{"shading": "nearest", "vmax": 1, **scale, **style})
        axes.set_xticks(places, [f"{n:g}" for n in sizes])
        axes.set(xlabel="number of agents N", ylabel="coupling J (nat)")
        axes.figure.colorbar(mesh, ax=axes, label=PHASES[name])

    phase.__doc__ = f"The {PHASES[name]} by the number of agents and the coupling."
    return draws("random_field_phase_diagram", name, f"J! n_agents!: {name}")(phase)


for _name in PHASES:
    _phase_view(_name)


@draws("random_field_bifurcation", "branches", "point: J m stable; fold*: fold_J fold_m; : pitchfork_J pitchfork_kind")
def branches(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Solutions m against the coupling: full lines are stable, dashed ones unstable, dots are folds."""
    coupling, m, stable = part["J"].values, part["m"].values, part["stable"].values.astype(bool)
    pitchfork, most = float(part["pitchfork_J"]), part.attrs["option_max_J"]
    full, dashed = ({"color": PALETTE[0], "linestyle": line, **style} for line in ("-", "--"))
    if not np.isnan(pitchfork):  # the solution m = 0 of a symmetric distribution is stable below the pitchfork
        end = min(pitchfork, most)
        axes.plot([0, end], [0, 0], **full)
        axes.plot([end, most], [0, 0], **dashed)
    there = np.isfinite(coupling)
    for chosen, look in ((stable, {**full, "label": "stable"}), (~stable, {**dashed, "label": "unstable"})):
        # A line through these points only; it also takes the first point after each of its pieces.
        shown = there & (chosen | np.r_[False, chosen[:-1]] & np.r_[False, there[:-1]])
        axes.plot(np.where(shown, coupling, np.nan), np.where(shown, m, np.nan), **look)
    if part.sizes["fold"]:
        axes.plot(part["fold_J"], part["fold_m"], "o", color="black", label="fold")
    if pitchfork <= most:
        axes.plot(pitchfork, 0, "D", color="black", label=f"pitchfork, {part['pitchfork_kind'].item()}")
    axes.set(xlim=(0, most), ylim=(-1.05, 1.05), xlabel="coupling J (nat)", ylabel="truth minus rival, m")


@draws("random_field_fixed_points", "solutions", "fixed_point: stability m q")
def solutions(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Commitment q against m at each solution: filled where stable, open where unstable."""
    axes.axvline(0, color=NEUTRAL, linewidth=0.8)
    for status, fill in FILLS.items():
        here = part.isel(fixed_point=part["stability"].values == status)
        if here.sizes["fixed_point"]:
            look = {"marker": "o", "linestyle": "none", "color": PALETTE[0], "fillstyle": fill, "markersize": 9}
            axes.plot(here["m"], here["q"], **{**look, "label": status, **style})
    axes.set(xlim=(-1.05, 1.05), ylim=(-0.03, 1.03), xlabel="truth minus rival, m", ylabel="commitment q")


@draws("random_field_fixed_points", "levels", "fixed_point: stability m")
def levels(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Solutions m as horizontal lines, full where stable and dashed where not, for axes with m over time."""
    for status, line in LINES.items():
        for k, m in enumerate(part["m"].values[part["stability"].values == status]):
            look = {"color": "black", "linewidth": 1, "linestyle": line, **style}
            axes.axhline(m, label=f"_{k}" if k else f"m*, {status}", **look)
    axes.set_ylabel(axes.get_ylabel() or "truth minus rival, m")
