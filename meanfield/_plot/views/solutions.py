"""Solutions of the rate equation by time, the means of N agents around them, and theory beside simulation."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.curves import MARKERS, NO_CONSENSUS, around, draw_by_size, draw_rate_equation, note, words_drawn
from meanfield._plot.intervals import aside, error_bars, name_rows
from meanfield._plot.registry import draws
from meanfield._plot.scales import (
    last_change,
    plain_log,
    show_rounds,
    show_shares,
    show_sizes,
    size_colours,
    size_label,
)
from meanfield._plot.words import NEUTRAL, word_colours, words_in
from meanfield._population.observables import MIXED

MOST_NAMED = 12
DEVIATIONS = 2.0
WIDTH = 30  # of a note, in letters


@draws(
    "escape_path",
    "word_share",
    "time!: round; time word!+ ...: word_share",
    needs={"word_share": "a policy or a population"},
)
@draws("solution", "word_share", "time!: round; time word!+ ...: word_share")
def word_share(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Word shares by population round; several starting compositions share the words' colours."""
    rounds, curves = part["round"].values, _curves(part["word_share"], 2)
    show_rounds(axes, last_change(rounds, curves))
    for number, word in enumerate(words_in(part)):
        lines = axes.plot(rounds, curves[:, number], **{"color": colours[word], **style})
        lines[0].set_label(word)
    show_shares(axes, "word share")


@draws("solution", "success_rate", "time!: round; time ...: success_rate")
def success_rate(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The probability that two random agents say the same word, by population round."""
    rounds, curves = part["round"].values, _curves(part["success_rate"], 1)
    show_rounds(axes, last_change(rounds, curves))
    axes.plot(rounds, curves, **{"color": NEUTRAL, **style})
    show_shares(axes, "success rate")


@draws("escape_path", "composition", "time! state! ...: composition")
@draws("reaction_solution", "composition", "time! state! ...: composition", by=())
def composition(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The fraction of agents in each state by time; of many states only the largest are named."""
    _draw_states(axes, part, "composition", **style)
    show_shares(axes, "fraction of agents")


@draws(
    "finite_size",
    "word_share",
    "n_agents! time word!+: mean variance; time: round; time word+: word_share; : attractors?",
    needs={"mean": "n_agents"},
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


@draws("exact_moments", "word_share", "interactions: round; interactions word!+: mean variance")
def exact_word_share(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Mean word share among N agents with bands of ± 2 standard deviations within 0 and 1, exactly."""
    size = {"n_agents": [part.attrs["option_n_agents"]]}
    mean, half = (array.expand_dims(size) for array in (part["mean"], _half_width(part)))
    draw_by_size(axes, mean, half, part, colours, **style)


@draws("finite_size", "variance", "time: round; time word!+: word_share_variance")
def variance(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """N times the variance of the word share, for large N."""
    _coefficient(axes, part["word_share_variance"], part, colours, **style)
    axes.set_ylabel("N · variance of word share")
    axes.set_ylim(bottom=0)


@draws("finite_size", "correction", "time: round; time word!+: word_share_correction")
def correction(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """N times the difference of the mean word share from the rate equation, for large N."""
    axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    _coefficient(axes, part["word_share_correction"], part, colours, **style)
    axes.set_ylabel("N · (mean - limit)")


@draws("reaction_finite_size", "composition", "time! state!: composition mean? variance?", by=("n_agents",))
def mean_composition(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Mean fractions of N agents in each state, bands of ± 2 standard deviations; without N the rate equation."""
    half = _half_width(part) if "mean" in part and "variance" in part else None
    _draw_states(axes, part, "mean" if "mean" in part else "composition", half, **style)
    show_shares(axes, "fraction of agents")


@draws("reaction_finite_size", "variance", "time! state!: composition_variance", by=())
def composition_variance(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """N times the variance of the fraction of agents in each state, for large N."""
    _draw_states(axes, part, "composition_variance", **style)
    axes.set_ylabel("N · variance of the fraction")


@draws("reaction_finite_size", "correction", "time! state!: composition_correction", by=())
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


@draws("comparison", "trajectories", "n_agents! round! word!+: simulated band; round word+: theory")
def trajectories(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Simulated mean word shares with their confidence bands for each number of agents, and the rate equation."""
    draw_by_size(axes, part["simulated"], part["band"], part, colours, **style)
    draw_rate_equation(axes, part["theory"], part)


@draws(
    "comparison",
    "outcomes",
    "n_agents!: no_consensus; word! n_agents: consensus_probability; "
    "word bound=low,high n_agents: consensus_interval; bound=low,high n_agents: no_consensus_interval; "
    ": predicted_word predicted_end?",
)
def outcomes(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Fractions of runs by winner against the number of agents; predicted ones have a solid line."""
    predicted, sizes = str(part["predicted_word"].item()), part["n_agents"].values
    undecided = predicted == MIXED or str(part.get("predicted_end", part["predicted_word"]).item()) != predicted
    for number, name in enumerate((*words_in(part), NO_CONSENSUS)):
        if name == NO_CONSENSUS:
            share, interval, expected = part["no_consensus"], part["no_consensus_interval"], undecided
        else:
            one = part.isel(word=number)
            share, interval, expected = one["consensus_probability"], one["consensus_interval"], name == predicted
        if name == NO_CONSENSUS and not expected and not share.any():
            continue
        look = {"color": colours.get(name, NEUTRAL), "marker": MARKERS[number % len(MARKERS)]}
        if expected:
            look |= {"fmt": "-", "label": f"{name} (predicted)"}
        else:
            look |= {"fmt": ":", "markerfacecolor": "white", "label": name}
        error_bars(axes, sizes, share, *interval.values, **{**look, **style})
    show_sizes(axes, sizes, "fraction of runs")


@draws("comparison", "error", "n_agents!: error error_uncertainty; : error_slope")
def error(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The error of theory against the number of agents where it is resolved, and a line of the order 1/N."""
    sizes, value, half = (part[name].values for name in ("n_agents", "error", "error_uncertainty"))
    resolved = np.isfinite(half)
    show_sizes(axes, sizes, logarithmic=True)  # 1/N is a straight line
    if resolved.any():
        n_agents, value, half = sizes[resolved], value[resolved], half[resolved]
        slope = float(part["error_slope"])
        label = f"slope {slope:.2f}" if np.isfinite(slope) else "simulated"
        error_bars(axes, n_agents, value, half, **{"color": "black", "label": label, **style})
        axes.plot(n_agents, value[0] * n_agents[0] / n_agents, color=NEUTRAL, linestyle="--", label="1/N")
        axes.set_yscale("log")
        plain_log(axes.yaxis)
    if not resolved.all():
        note(axes, "not resolved: N = " + ", ".join(f"{size:,}" for size in sizes[~resolved]))
    axes.set_ylabel("error of theory")


@draws("ensemble_comparison", "p_values", "n_agents!: outcome_p; n_agents winner!: time_p")
def p_values(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """p-values of equal outcomes and times for each number of agents, times the number of tests.

    Ensembles differ at a size where one lies below the dashed line.
    """
    values, sizes = np.column_stack([part["outcome_p"].values, part["time_p"].values]), part["n_agents"].values
    known = np.isfinite(values)
    adjusted = np.minimum(values * known.sum(1, keepdims=True), 1)
    names = ["outcomes", *(f"times, {winner}" for winner in part["winner"].values)]
    names = [name if any_runs else f"{name} (no runs)" for name, any_runs in zip(names, known.any(0), strict=True)]
    for k, colour in enumerate(size_colours(len(sizes))):
        look = {"linestyle": "none", "marker": "o", "color": colour, "label": size_label(sizes[k]), **style}
        axes.plot(adjusted[k], np.arange(len(names)) + aside(len(sizes), 0.4)[k], **look)
    significant = 1 - part.attrs["option_level"]
    axes.axvline(significant, color="black", linestyle="--", label=f"differ below {significant:.3g}")
    name_rows(axes, names, xscale="log", xlabel="p-value times the number of tests")
