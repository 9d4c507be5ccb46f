"""Times until consensus, and how long a consensus is held."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.intervals import error_bars
from meanfield._plot.registry import draws
from meanfield._plot.runs import MARKERS, with_runs
from meanfield._plot.scales import show_rounds, show_shares, show_sizes, size_colours, size_label
from meanfield._plot.size_curves import along_sizes, by_round
from meanfield._plot.words import NEUTRAL, PALETTE, words_in

Colours = dict[str, str]


@draws(
    "consensus_times",
    view="density",
    by=("model", "pair", "n_agents"),
    reads="consensus_time: consensus_time; consensus_time word+: density; word+: word wins; : no_consensus",
)
def density(axes: Axes, part: xr.Dataset, colours: Colours, **style: Any) -> None:
    """Densities of the consensus time by winner, with the number of runs that each wins."""
    part = part.sortby("consensus_time")
    for number, word in enumerate(words_in(part)):
        one, wins = part.isel(word=number), int(part["wins"].isel(word=number))
        look = {"color": colours[word], "drawstyle": "steps-mid", "label": with_runs(word, wins), **style}
        axes.plot(one["consensus_time"], one["density"], **look)
    if (without := part["no_consensus"].item()) > 0:
        axes.plot([], [], " ", label=f"no consensus: {100 * without:.3g} % of runs")
    axes.set_xlabel("consensus time (rounds from 0)")
    axes.set_ylabel("density (1/round)")
    axes.set_ylim(bottom=0)


@draws("consensus_times", view="mode", reads="n_agents: n_agents; n_agents word+: mode; word+: word")
def mode(axes: Axes, part: xr.Dataset, colours: Colours, **style: Any) -> None:
    """The most frequent consensus time against the number of agents, by winner."""
    modes = along_sizes(part["mode"])
    for number, word in enumerate(words_in(part)):
        label = word if modes.isel(word=number).notnull().any() else f"{word}: no runs"
        look = {"color": colours[word], "marker": MARKERS[number % len(MARKERS)], "label": label, **style}
        axes.plot(modes["n_agents"], modes.isel(word=number), **look)
    show_sizes(axes, modes["n_agents"].values)
    axes.set_ylabel("most frequent time (rounds)")
    axes.set_ylim(bottom=0)


@draws("consensus_stability", view="word_share", reads="n_agents: n_agents; round: round; n_agents round: word_share")
def held_share(axes: Axes, part: xr.Dataset, colours: Colours, **style: Any) -> None:
    """The mean share of the word on which all agreed at the start, for each number of agents."""
    share = by_round(along_sizes(part["word_share"]))
    sizes = share["n_agents"].values
    show_rounds(axes, float(share["round"][-1]))
    for one, size, colour in zip(share, sizes, size_colours(len(sizes)), strict=True):
        axes.plot(share["round"], one, **{"color": colour, "label": size_label(size), **style})
    show_shares(axes, f"mean share of '{part.attrs['held_word']}'")


@draws(
    "consensus_stability",
    view="held",
    reads="n_agents: n_agents held moved; n_agents bound: interval; bound=low,high: bound",
)
def held(axes: Axes, part: xr.Dataset, colours: Colours, **style: Any) -> None:
    """Fractions of runs that still hold the word, and of those that agree on another, against the number of agents."""
    fraction, interval = along_sizes(part["held"]), along_sizes(part["interval"])
    sizes, bounds = fraction["n_agents"].values, (interval.sel(bound=bound).values for bound in ("low", "high"))
    look = {"fmt": "o-", "color": PALETTE[0], "label": f"hold '{part.attrs['held_word']}'", **style}
    error_bars(axes, sizes, fraction.values, *bounds, **look)
    axes.plot(sizes, along_sizes(part["moved"]), marker="s", color=NEUTRAL, label="agree on another word")
    show_sizes(axes, sizes)
    show_shares(axes, "fraction of runs")
