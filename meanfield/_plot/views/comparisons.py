"""Theory beside simulation, and two simulations."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.curves import draw_by_size, draw_rate_equation, note
from meanfield._plot.intervals import aside, error_bars, name_rows
from meanfield._plot.registry import draws
from meanfield._plot.runs import MARKERS, NO_CONSENSUS
from meanfield._plot.scales import plain_log, show_sizes, size_colours, size_label
from meanfield._plot.words import NEUTRAL, words_in
from meanfield._population.observables import MIXED


@draws("comparison", view="trajectories", reads="n_agents! round! word!+: simulated band; round word+: theory")
def trajectories(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Simulated mean word shares with their confidence bands for each number of agents, and the rate equation."""
    draw_by_size(axes, part["simulated"], part["band"], part, colours, **style)
    draw_rate_equation(axes, part["theory"], part)


@draws(
    "comparison",
    view="outcomes",
    reads="n_agents!: no_consensus; word! n_agents: consensus_probability; "
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


@draws("comparison", view="error", reads="n_agents!: error error_uncertainty; : error_slope")
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


@draws("ensemble_comparison", view="p_values", reads="n_agents!: outcome_p; n_agents winner!: time_p")
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
