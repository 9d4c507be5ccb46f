"""Individual against collective bias, and how neutral agents are before they have met anyone."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.curves import note
from meanfield._plot.intervals import error_bars, name_rows
from meanfield._plot.registry import draws
from meanfield._plot.words import NEUTRAL, PALETTE, in_braces, model_name

# Marker and colour of each type
TYPES = {
    "amplified": ("^", PALETTE[0]),
    "induced": ("D", PALETTE[2]),
    "reversed": ("v", PALETTE[5]),
    "none": ("o", NEUTRAL),
}
MOST_NAMED = 15


@draws(
    "misalignment",
    view="bias",
    by=("n_agents",),
    reads="pair: type individual collective strong_word model; bound=low,high pair: interval; pair word: word_label",
)
def bias(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Collective against individual bias towards the strong word, by type of misalignment; equal on the diagonal."""
    axes.axline((0, 0), slope=1, color="0.6", linestyle="--", linewidth=1, zorder=1)
    for half in (axes.axhline, axes.axvline):
        half(0.5, color="0.85", linewidth=1, zorder=0.5)
    x, y, kind, ends = (part[name].values for name in ("individual", "collective", "type", "interval"))
    for name, (marker, colour) in TYPES.items():
        here = kind == name
        if here.any():
            look = {"fmt": marker, "color": colour, "label": name, **style}
            error_bars(axes, x[here], y[here], *ends[:, here], **look)
    drawn = np.isin(kind, list(TYPES))
    if drawn.sum() <= MOST_NAMED:
        rising = np.flatnonzero(drawn)[np.argsort(y[drawn], kind="stable")]
        for place, k in enumerate(rising.tolist()):  # the words stand on alternate sides
            shift, side = (-5, "right") if place % 2 else (5, "left")
            look = {"ha": side, "va": "center", "fontsize": "small", "textcoords": "offset points"}
            axes.annotate(str(part["strong_word"].values[k]), (x[k], y[k]), xytext=(shift, 0), **look)
    for k in np.flatnonzero(~drawn):
        note(axes, f"no consensus: {_names(part)[k]}")
    axes.set(xlim=_limits(x[drawn]), ylim=_limits(ends[:, drawn]))
    axes.set(xlabel="individual bias, P(strong word)", ylabel="collective bias")


def _limits(values: np.ndarray) -> tuple[float, float]:
    """Limits around the values and 1/2, with room for words."""
    low, high = min(0.5, values.min(initial=0.5)), max(0.5, values.max(initial=0.5))
    room = max(0.2 * (high - low), 0.05)
    return low - room, high + room


def _names(part: xr.Dataset) -> list[str]:
    """The words of each policy, with its model where there are several."""
    names = [in_braces(map(str, words)) for words in part["word_label"].values]
    models = [model_name(model) for model in part["model"].values]
    return names if len(set(models)) == 1 else [f"{a} {b}" for a, b in zip(models, names, strict=True)]


@draws("neutrality", view="distance", by=(), reads="pair: distance neutral model; pair word: word_label")
def distance(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The distance of agents with an empty memory from a random choice, open where they count as neutral."""
    value, neutral = part["distance"].values, part["neutral"].values
    look = {"color": PALETTE[0], "marker": "o", "linestyle": "none", "clip_on": False}
    for which, label, face in ((~neutral, "not neutral", {}), (neutral, "neutral", {"markerfacecolor": "white"})):
        if which.any():
            axes.plot(value[which], np.flatnonzero(which), **{**look, "label": label, **style, **face})
    limit = float(part.attrs["option_largest_neutral_distance"])
    axes.axvline(limit, color="0.4", linestyle="--", linewidth=1, label=f"neutral below {limit:g}")
    name_rows(axes, _names(part), xlabel="Jensen-Shannon distance from a random choice")
    axes.set_xlim(left=0)
