"""Solutions of the rate equation: word shares, success rates and compositions by time."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.registry import draws
from meanfield._plot.scales import last_change, show_rounds, show_shares
from meanfield._plot.words import NEUTRAL, word_colours, words_in

MOST_NAMED = 12


@draws(
    "escape_path",
    view="word_share",
    needs={"word_share": "a policy or a population"},
    reads="time: time round; time word+ ...: word_share; word+: word",
)
@draws("solution", view="word_share", reads="time: time round; time word+ ...: word_share; word+: word")
def word_share(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Word shares by population round; several starting compositions share the words' colours."""
    part = part.sortby("time")
    rounds, curves = part["round"].values, _curves(part["word_share"], "word")
    show_rounds(axes, last_change(rounds, curves))
    for number, word in enumerate(words_in(part)):
        lines = axes.plot(rounds, curves[:, number], **{"color": colours[word], **style})
        lines[0].set_label(word)
    show_shares(axes, "word share")


@draws("solution", view="success_rate", reads="time: time round; time ...: success_rate")
def success_rate(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The probability that two random agents say the same word, by population round."""
    part = part.sortby("time")
    rounds, curves = part["round"].values, _curves(part["success_rate"])
    show_rounds(axes, last_change(rounds, curves))
    axes.plot(rounds, curves, **{"color": NEUTRAL, **style})
    show_shares(axes, "success rate")


@draws("escape_path", view="composition", reads="time: time; state: state; time state ...: composition")
@draws("reaction_solution", view="composition", by=(), reads="time: time; state: state; time state ...: composition")
def composition(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The fraction of agents in each state by time; of many states only the largest are named."""
    draw_states(axes, part, "composition", **style)
    show_shares(axes, "fraction of agents")


def draw_states(axes: Axes, part: xr.Dataset, column: str, deviation: xr.DataArray | None = None, **style: Any) -> None:
    """A line for each state by time, with a band of ± `deviation` within 0 and 1."""
    part = part.sortby("time")
    curves = _curves(part[column], "state")
    largest = curves.max(axis=(0, 2))
    named = set(np.argsort(-largest, kind="stable")[:MOST_NAMED].tolist())
    states = [str(state) for state in part["state"].values]
    colours = word_colours([states])
    for number, state in enumerate(states):
        lines = axes.plot(part["time"], curves[:, number], **{"color": colours[state], **style})
        if number in named:
            lines[0].set_label(state)
        if deviation is not None:
            middle, half = part[column].isel(state=number), deviation.isel(state=number).sortby("time")
            low, high = ((middle + side * half).clip(0, 1) for side in (-1, 1))
            axes.fill_between(part["time"], low, high, color=colours[state], alpha=0.25, linewidth=0)
    if len(named) < len(states):
        axes.plot([], [], " ", label=f"and {len(states) - len(named)} more states")
    units = part["time"].attrs.get("units", "1")
    axes.margins(x=0)
    axes.set_xlabel("time" if units == "1" else f"time ({units})")


def _curves(array: xr.DataArray, *kinds: str) -> np.ndarray:
    """The numbers with these dims, and with all others together as the last one."""
    array = array.transpose("time", *kinds, ...)
    return array.values.reshape(*array.shape[: 1 + len(kinds)], -1)
