"""Mean word shares among N agents, with bands."""

from __future__ import annotations

import textwrap
from typing import Any

import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.registry import draws
from meanfield._plot.scales import last_change, show_rounds, show_shares
from meanfield._plot.size_curves import by_round, draw_by_size, draw_rate_equation, words_drawn
from meanfield._plot.views.solutions import draw_states

DEVIATIONS = 2.0
WIDTH = 30  # of a note, in letters


@draws(
    "finite_size",
    view="word_share",
    needs={"mean": "n_agents"},
    reads="n_agents: n_agents; time: round; time word+: word_share; n_agents time word+: mean variance; word+: word; "
    ": attractors?",
)
def word_share(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Mean word share among N agents with bands of ± 2 standard deviations within 0 and 1, and the rate equation.

    If groups may end at several attractors, the legend names them.
    """
    draw_by_size(axes, part["mean"], _half_width(part), part, colours, **style)
    draw_rate_equation(axes, part["word_share"], part)
    ends = str(part["attractors"].item() if "attractors" in part else part.attrs.get("attractors", "")).split("; ")
    if len(ends) > 1:
        told = f"bands are those around one resting place, but groups end at {' or '.join(ends)}"
        axes.plot([], [], " ", label=textwrap.fill(told, WIDTH))


@draws("finite_size", view="variance", reads="time: round; time word+: word_share_variance; word+: word")
def variance(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """N times the variance of the word share, for large N."""
    _coefficient(axes, part["word_share_variance"], part, colours, **style)
    axes.set_ylabel("N · variance of word share")
    axes.set_ylim(bottom=0)


@draws("finite_size", view="correction", reads="time: round; time word+: word_share_correction; word+: word")
def correction(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """N times the difference of the mean word share from the rate equation, for large N."""
    axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    _coefficient(axes, part["word_share_correction"], part, colours, **style)
    axes.set_ylabel("N · (mean - limit)")


@draws(
    "reaction_finite_size",
    view="composition",
    by=("n_agents",),
    reads="time: time; state: state; time state: composition mean? variance?",
)
def composition(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Mean fractions of N agents in each state, bands of ± 2 standard deviations; without N the rate equation."""
    half = _half_width(part) if "mean" in part and "variance" in part else None
    draw_states(axes, part, "mean" if "mean" in part else "composition", half, **style)
    show_shares(axes, "fraction of agents")


@draws(
    "reaction_finite_size", view="variance", by=(), reads="time: time; state: state; time state: composition_variance"
)
def composition_variance(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """N times the variance of the fraction of agents in each state, for large N."""
    draw_states(axes, part, "composition_variance", **style)
    axes.set_ylabel("N · variance of the fraction")


@draws(
    "reaction_finite_size",
    view="correction",
    by=(),
    reads="time: time; state: state; time state: composition_correction",
)
def composition_correction(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """N times the difference of the mean fraction in each state from the rate equation, for large N."""
    draw_states(axes, part, "composition_correction", **style)
    axes.set_ylabel("N · (mean - limit)")


@draws("exact_moments", view="word_share", reads="interactions: round; interactions word+: mean variance; word+: word")
def exact_word_share(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Mean word share among N agents with bands of ± 2 standard deviations within 0 and 1, exactly."""
    part = part.assign_coords(n_agents=part.attrs["option_n_agents"])
    draw_by_size(axes, part["mean"], _half_width(part), part, colours, **style)


def _half_width(part: xr.Dataset) -> xr.DataArray:
    # Rounding may leave a variance of 0 slightly negative.
    return DEVIATIONS * part["variance"].clip(min=0) ** 0.5


def _coefficient(axes: Axes, array: xr.DataArray, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    curves = by_round(array)
    show_rounds(axes, last_change(curves["round"].values, curves.values.T))
    for number, word in enumerate(words_drawn(part)):
        look = {"color": colours[word], "label": word, **style}
        axes.plot(curves["round"], curves.isel(word=number), **look)
