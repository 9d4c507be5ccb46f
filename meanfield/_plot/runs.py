"""Runs of an ensemble: as lines with their mean and band, and where they end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.curves import curve
from meanfield._plot.scales import last_change, show_rounds, show_shares, size_colours, size_label
from meanfield._plot.words import NEUTRAL, word_colours, words_in

MOST_LINES = 100
BAND = (5, 95)  # percentiles of the runs
NO_CONSENSUS = "no consensus"
MARKERS = "o^svDPX*"


class End(NamedTuple):
    """One way in which runs end."""

    name: str
    colour: str
    marker: str
    reached: np.ndarray  # whether a run ends so, in the shape of `ends_of`


def ends_of(part: xr.Dataset) -> xr.DataArray:
    """The word of consensus of each run, or the group of states in which it was absorbed."""
    return part["consensus_word" if "consensus_word" in part else "absorbed_group"]


def each_end(part: xr.Dataset, colours: dict[str, str]) -> list[End]:
    """The ends that are possible, as far as the result tells; the last one is no consensus."""
    ends = ends_of(part)
    known = ends.notnull().values
    names = words_in(part) or tuple(sorted({str(name) for name in ends.values[known]}))
    colours = colours or word_colours([names])
    found = [
        End(name, colours[name], MARKERS[number % len(MARKERS)], known & (ends.values == name))
        for number, name in enumerate(names)
    ]
    return [*found, End(NO_CONSENSUS if "consensus_word" in part else "not absorbed", NEUTRAL, "x", ~known)]


def with_runs(name: str, number: int) -> str:
    """A label that says how many runs it stands for."""
    return f"{name}: {number:,} run{'s' * (number != 1)}"


def draw_band(axes: Axes, rounds: np.ndarray, runs: np.ndarray, label: str, **style: Any) -> None:
    """The mean over runs (run, round), and the band between their 5th and 95th percentiles."""
    curve(axes, rounds, runs.mean(0), np.percentile(runs, BAND, axis=0), **{"label": label, **style})


def draw_lines(axes: Axes, rounds: np.ndarray, runs: np.ndarray, colours: str | Sequence[str]) -> None:
    """Thin lines for the first 100 runs (run, round), in one colour or each in its own."""
    for run, colour in zip(runs[:MOST_LINES], np.resize(colours, len(runs)), strict=False):
        axes.plot(rounds, run, color=str(colour), linewidth=0.5, alpha=0.3)


def tell_lines(axes: Axes, runs: int) -> None:
    """An entry of the legend that says how many runs have lines, where not all have."""
    if runs > MOST_LINES:
        axes.plot([], [], color=NEUTRAL, linewidth=0.5, label=f"the first {MOST_LINES} runs")


def draw_groups(
    axes: Axes,
    shares: xr.DataArray,
    names: Iterable[str],
    colours: Iterable[Any],
    ylabel: str,
    *,
    thin: bool = False,
    **style: Any,
) -> None:
    """A share of runs (group, run, round) with a mean and a band for each group, and `thin` lines of the runs.

    Rounds without a number, such as round 0, in which nobody meets, are left out.
    """
    shares = shares.dropna("round", how="all")
    rounds = shares["round"].values
    show_rounds(axes, last_change(rounds, np.moveaxis(shares.values, -1, 0)))
    for runs, name, colour in zip(shares.values, names, colours, strict=True):
        if thin:
            draw_lines(axes, rounds, runs, colour)
        draw_band(axes, rounds, runs, name, **{"color": colour, **style})
    if thin:
        tell_lines(axes, shares.sizes["run"])
    show_shares(axes, ylabel)


def draw_sizes(axes: Axes, shares: xr.DataArray, ylabel: str, **style: Any) -> None:
    """A share of runs (n_agents, run, round) for each number of agents."""
    sizes = shares["n_agents"].values
    draw_groups(axes, shares, map(size_label, sizes), size_colours(len(sizes)), ylabel, **style)
