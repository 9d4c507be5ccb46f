"""Solutions of the rate equation by time, and the means of N agents around them."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.curves import around, draw_by_size, draw_rate_equation, note, words_drawn
from meanfield._plot.registry import draws
from meanfield._plot.scales import last_change, show_rounds, show_shares
from meanfield._plot.words import NEUTRAL, word_colours, words_in

MOST_NAMED = 12
DEVIATIONS = 2.0
WIDTH = 30  # of a note, in letters


@draws(
    "escape_path",
    view="word_share",
    needs={"word_share": "a policy or a population"},
    reads="time!: round; time word!+ ...: word_share",
)
@draws("solution", view="word_share", reads="time!: round; time word!+ ...: word_share")
def word_share(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Word shares by population round; several starting compositions share the words' colours."""
    rounds, curves = part["round"].values, _curves(part["word_share"], 2)
    show_rounds(axes, last_change(rounds, curves))
    for number, word in enumerate(words_in(part)):
        lines = axes.plot(rounds, curves[:, number], **{"color": colours[word], **style})
        lines[0].set_label(word)
    show_shares(axes, "word share")


@draws("solution", view="success_rate", reads="time!: round; time ...: success_rate")
def success_rate(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The probability that two random agents say the same word, by population round."""
    rounds, curves = part["round"].values, _curves(part["success_rate"], 1)
    show_rounds(axes, last_change(rounds, curves))
    axes.plot(rounds, curves, **{"color": NEUTRAL, **style})
    show_shares(axes, "success rate")


@draws("escape_path", view="composition", reads="time! state! ...: composition")
@draws("reaction_solution", view="composition", by=(), reads="time! state! ...: composition")
def composition(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The fraction of agents in each state by time; of many states only the largest are named."""
    _draw_states(axes, part, "composition", **style)
    show_shares(axes, "fraction of agents")


@draws(
    "finite_size",
    view="word_share",
    needs={"mean": "n_agents"},
    reads="n_agents! time word!+: mean variance; time: round; time word+: word_share; : attractors?",
)
def word_share_by_size(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Mean word share among N agents with bands of ± 2 standard deviations within 0 and 1, and the rate equation.

    If groups may end at several attractors, the legend names them.
    """
    draw_by_size(axes, part["mean"], _half_width(part), part, colours, **style)
    draw_rate_equation(axes, part["word_share"], part)
    ends = str(part["attractors"].item() if "attractors" in part else part.attrs.get("attractors", "")).split("; ")
    if len(ends) > 1:
        told = f"bands are those around one resting place, but groups end at {' or '.join(ends)}"
        note(axes, textwrap.fill(told, WIDTH))


@draws("exact_moments", view="word_share", reads="interactions: round; interactions word!+: mean variance")
def exact_word_share(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Mean word share among N agents with bands of ± 2 standard deviations within 0 and 1, exactly."""
    size = {"n_agents": [part.attrs["option_n_agents"]]}
    mean, half = (array.expand_dims(size) for array in (part["mean"], _half_width(part)))
    draw_by_size(axes, mean, half, part, colours, **style)


@draws("finite_size", view="variance", reads="time: round; time word!+: word_share_variance")
def variance(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """N times the variance of the word share, for large N."""
    _coefficient(axes, part["word_share_variance"], part, colours, **style)
    axes.set_ylabel("N · variance of word share")
    axes.set_ylim(bottom=0)


@draws("finite_size", view="correction", reads="time: round; time word!+: word_share_correction")
def correction(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """N times the difference of the mean word share from the rate equation, for large N."""
    axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    _coefficient(axes, part["word_share_correction"], part, colours, **style)
    axes.set_ylabel("N · (mean - limit)")


@draws("reaction_finite_size", view="composition", by=("n_agents",), reads="time! state!: composition mean? variance?")
def mean_composition(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Mean fractions of N agents in each state, bands of ± 2 standard deviations; without N the rate equation."""
    half = _half_width(part) if "mean" in part and "variance" in part else None
    _draw_states(axes, part, "mean" if "mean" in part else "composition", half, **style)
    show_shares(axes, "fraction of agents")


@draws("reaction_finite_size", view="variance", by=(), reads="time! state!: composition_variance")
def composition_variance(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """N times the variance of the fraction of agents in each state, for large N."""
    _draw_states(axes, part, "composition_variance", **style)
    axes.set_ylabel("N · variance of the fraction")


@draws("reaction_finite_size", view="correction", by=(), reads="time! state!: composition_correction")
def composition_correction(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """N times the difference of the mean fraction in each state from the rate equation, for large N."""
    _draw_states(axes, part, "composition_correction", **style)
    axes.set_ylabel("N · (mean - limit)")


def _draw_states(axes: Axes, part: xr.Dataset, column: str, half: xr.DataArray | None = None, **style: Any) -> None:
    """A line for each state by time, with a band of this half width within 0 and 1."""
    curves = _curves(part[column], 2)
    states = [str(state) for state in part["state"].values]
    named = set(np.argsort(-curves.max(axis=(0, 2)), kind="stable")[:MOST_NAMED].tolist())
    for number, (state, colour) in enumerate(word_colours([states]).items()):
        lines = axes.plot(part["time"], curves[:, number], **{"color": colour, **style})
        if number in named:
            lines[0].set_label(state)
        if half is not None:
            ends = around(part[column].isel(state=number), half.isel(state=number))
            axes.fill_between(part["time"], *ends, color=lines[0].get_color(), alpha=0.2, linewidth=0)
    if len(named) < len(states):
        note(axes, f"and {len(states) - len(named)} more states")
    units = part["time"].attrs.get("units", "1")
    axes.margins(x=0)
    axes.set_xlabel("time" if units == "1" else f"time ({units})")


def _half_width(part: xr.Dataset) -> xr.DataArray:
    # Rounding may leave a variance of 0 slightly negative.
    return DEVIATIONS * part["variance"].clip(min=0) ** 0.5


def _coefficient(axes: Axes, array: xr.DataArray, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The coefficient of 1/N of each word by round."""
    rounds = part["round"].values
    show_rounds(axes, last_change(rounds, array.values))
    for number, word in enumerate(words_drawn(part)):
        axes.plot(rounds, array.isel(word=number), **{"color": colours[word], "label": word, **style})


def _curves(array: xr.DataArray, dims: int) -> np.ndarray:
    """The numbers along so many dims, and along all others together as the last one."""
    return array.values.reshape(*array.shape[:dims], -1)
