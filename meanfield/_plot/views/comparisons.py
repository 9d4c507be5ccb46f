"""Theory beside simulation, and two simulations."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from meanfield._plot.intervals import error_bars
from meanfield._plot.registry import draws
from meanfield._plot.runs import MARKERS, NO_CONSENSUS
from meanfield._plot.scales import show_shares, show_sizes, size_colours, size_label
from meanfield._plot.size_curves import along_sizes, draw_by_size, draw_rate_equation
from meanfield._plot.words import NEUTRAL, words_in
from meanfield._population.observables import MIXED

Colours = dict[str, str]


@draws(
    "comparison",
    view="trajectories",
    reads="n_agents round word+: simulated band; round word+: theory; word+: word; n_agents: n_agents; round: round",
)
def trajectories(axes: Axes, part: xr.Dataset, colours: Colours, **style: Any) -> None:
    """Simulated mean word shares with their confidence bands for each number of agents, and the rate equation."""
    draw_by_size(axes, part["simulated"], part["band"], part, colours, **style)
    draw_rate_equation(axes, part["theory"], part)


@draws(
    "comparison",
    view="outcomes",
    reads="n_agents: n_agents no_consensus; n_agents word: consensus_probability; "
    "n_agents word bound: consensus_interval; n_agents bound: no_consensus_interval; bound=low,high: bound; "
    "word: word; : predicted_word predicted_end?",
)
def outcomes(axes: Axes, part: xr.Dataset, colours: Colours, **style: Any) -> None:
    """Fractions of runs by winner against the number of agents; predicted ones have a solid line."""
    words, predicted = words_in(part), str(part["predicted_word"].item())
    undecided = predicted == MIXED or str(part.get("predicted_end", part["predicted_word"]).item()) != predicted
    sizes = np.atleast_1d(np.sort(part["n_agents"].values))
    for number, name in enumerate((*words, NO_CONSENSUS)):
        share, interval = _outcome(part, number)
        expected = name == predicted or (name == NO_CONSENSUS and undecided)
        if name == NO_CONSENSUS and not expected and not share.any():
            continue
        look = {"color": colours.get(name, NEUTRAL), "marker": MARKERS[number % len(MARKERS)]}
        if expected:
            look |= {"fmt": "-", "label": f"{name} (predicted)"}
        else:
            look |= {"fmt": ":", "markerfacecolor": "white", "label": name}
        error_bars(axes, sizes, share, *interval, **{**look, **style})
    show_sizes(axes, sizes)
    show_shares(axes, "fraction of runs")


@draws("comparison", view="error", reads="n_agents: n_agents error error_uncertainty; : error_slope")
def error(axes: Axes, part: xr.Dataset, colours: Colours, **style: Any) -> None:
    """The error of theory against the number of agents where it is resolved, and a line of the order 1/N."""
    errors, uncertainties = (along_sizes(part[name]) for name in ("error", "error_uncertainty"))
    sizes, value, half = errors["n_agents"].values, errors.values, uncertainties.values
    resolved = np.isfinite(half)
    show_sizes(axes, sizes, logarithmic=True)  # 1/N is a straight line
    if resolved.any():
        n_agents, value, half = sizes[resolved], value[resolved], half[resolved]
        slope = float(part["error_slope"])
        label = f"slope {slope:.2f}" if np.isfinite(slope) else "simulated"
        error_bars(axes, n_agents, value, value - half, value + half, **{"color": "black", "label": label, **style})
        axes.plot(n_agents, value[0] * n_agents[0] / n_agents, color=NEUTRAL, linestyle="--", label="1/N")
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    if not resolved.all():
        unresolved = ", ".join(f"{size:,}" for size in sizes[~resolved])
        axes.plot([], [], " ", label=f"not resolved: N = {unresolved}")
    axes.set_ylabel("error of theory")


@draws(
    "ensemble_comparison",
    view="p_values",
    reads="n_agents: n_agents outcome_p; n_agents winner: time_p; winner: winner",
)
def p_values(axes: Axes, part: xr.Dataset, colours: Colours, **style: Any) -> None:
    """p-values of equal outcomes and times for each number of agents, times the number of tests.

    Ensembles differ at a size where one lies below the dashed line.
    """
    outcome, times = along_sizes(part["outcome_p"]), along_sizes(part["time_p"]).transpose("n_agents", "winner")
    values = np.column_stack([outcome.values, times.values])
    adjusted = np.minimum(values * np.isfinite(values).sum(1, keepdims=True), 1)
    names = ["outcomes", *(f"times, {winner}" for winner in part["winner"].values)]
    names = [
        name if known else f"{name} (no runs)" for name, known in zip(names, np.isfinite(values).any(0), strict=True)
    ]
    sizes, rows = outcome["n_agents"].values, np.arange(len(names))
    # Equal p-values would hide each other.
    aside = np.linspace(-0.2, 0.2, len(sizes)) if len(sizes) > 1 else np.zeros(1)
    for row, size, colour, shift in zip(adjusted, sizes, size_colours(len(sizes)), aside, strict=True):
        look = {"linestyle": "none", "marker": "o", "color": colour, "label": size_label(size), **style}
        axes.plot(row, rows + shift, **look)
    significant = 1 - part.attrs["option_level"]
    axes.axvline(significant, color="black", linestyle="--", label=f"differ below {significant:.3g}")
    axes.set_xscale("log")
    axes.set_xlabel("p-value times the number of tests")
    axes.set_yticks(rows, names)
    axes.set_ylim(len(names) - 0.5, -0.5)


def _outcome(part: xr.Dataset, number: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """The fraction of runs that end at the word of this number, of the last one without consensus; its interval."""
    word = number < part.sizes["word"]
    share, interval = (
        along_sizes(part[name].isel(word=number) if word else part[name])
        for name in (
            ("consensus_probability", "consensus_interval") if word else ("no_consensus", "no_consensus_interval")
        )
    )
    return share.values, [interval.sel(bound=bound).values for bound in ("low", "high")]
