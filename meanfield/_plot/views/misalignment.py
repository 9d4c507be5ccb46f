"""Individual against collective bias, and how neutral agents are before they have met anyone."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.intervals import error_bars, name_rows
from meanfield._plot.registry import draws
from meanfield._plot.words import NEUTRAL, PALETTE, model_name

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
    reads="pair: type individual collective strong_word model; pair bound=low,high: interval; pair word: word_label",
)
def bias(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Collective against individual bias towards the strong word, by type of misalignment; equal on the diagonal."""
    axes.axline((0, 0), slope=1, color="0.6", linestyle="--", linewidth=1, zorder=1)
    for half in (axes.axhline, axes.axvline):
        half(0.5, color="0.85", linewidth=1, zorder=0.5)
    individual, collective, kind = (part[name].values for name in ("individual", "collective", "type"))
    low, high = part["interval"].transpose("bound", "pair").values
    for name, (marker, colour) in TYPES.items():
        here = kind == name
        if here.any():
            look = {"fmt": marker, "color": colour, "label": name, **style}
            error_bars(axes, individual[here], collective[here], low[here], high[here], **look)
    drawn = np.isin(kind, list(TYPES))
    if drawn.sum() <= MOST_NAMED:
        _name_points(axes, part["strong_word"].values[drawn], individual[drawn], collective[drawn])
    for k in np.flatnonzero(~drawn):
        axes.plot([], [], " ", label=f"no consensus: {_names(part)[k]}")
    axes.set_xlabel("individual bias, P(strong word)")
    axes.set_ylabel("collective bias")
    axes.set_xlim(_limits(individual[drawn]))
    axes.set_ylim(_limits(np.concatenate([low[drawn], high[drawn]])))


def _name_points(axes: Axes, words: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """The strong word beside each point, on alternate sides from bottom to top."""
    for place, k in enumerate(np.argsort(y, kind="stable").tolist()):
        left = place % 2 == 1
        axes.annotate(
            str(words[k]), (x[k], y[k]), xytext=(-5 if left else 5, 0), textcoords="offset points",
            ha="right" if left else "left", va="center", fontsize="small",
        )  # fmt: skip


def _limits(values: np.ndarray) -> tuple[float, float]:
    """Limits around the values and 1/2, with room for words."""
    low, high = min([0.5, *values.tolist()]), max([0.5, *values.tolist()])
    room = max(0.2 * (high - low), 0.05)
    return low - room, high + room


def _names(part: xr.Dataset) -> list[str]:
    """The words of each policy, with its model where there are several."""
    labels = part["word_label"].transpose("pair", "word").values
    names = ["{" + ", ".join(map(str, words)) + "}" for words in labels]
    models = [model_name(model) for model in part["model"].values]
    return names if len(set(models)) == 1 else [f"{a} {b}" for a, b in zip(models, names, strict=True)]


@draws("neutrality", view="distance", by=(), reads="pair: distance neutral model; pair word: word_label")
def distance(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The distance of agents with an empty memory from a random choice, open where they count as neutral."""
    value, neutral = part["distance"].values, part["neutral"].values
    rows = np.arange(len(value))
    look = {"color": PALETTE[0], "marker": "o", "linestyle": "none", "clip_on": False}
    for which, label, face in ((~neutral, "not neutral", {}), (neutral, "neutral", {"markerfacecolor": "white"})):
        if which.any():
            axes.plot(value[which], rows[which], **{**look, "label": label, **style, **face})
    limit = float(part.attrs["option_largest_neutral_distance"])
    axes.axvline(limit, color="0.4", linestyle="--", linewidth=1, label=f"neutral below {limit:g}")
    name_rows(axes, _names(part))
    axes.set_xlim(left=0)
    axes.set_xlabel("Jensen-Shannon distance from a random choice")
