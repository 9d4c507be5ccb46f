"""Where simulated runs end and when, and how long a consensus is held."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.curves import MARKERS, each_end, ends_of, note, with_runs
from meanfield._plot.intervals import aside, error_bars, wilson
from meanfield._plot.registry import draws
from meanfield._plot.scales import (
    show_rounds,
    show_shares,
    show_sizes,
    size_colours,
    size_label,
    whole_bins,
    whole_ticks,
)
from meanfield._plot.words import NEUTRAL, PALETTE, words_in

BINS = 40
ABSORBING = {"absorbed_group": "absorbing=…"}


@draws(
    "simulation minimal_naming_game_simulation",
    "times",
    "run: consensus_round consensus_word; word: word",
    by=("model", "pair", "n_agents"),
)
@draws("protocol_simulation", "times", "run: absorbed_round absorbed_group", by=(), needs=ABSORBING)
def times(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Histogram of the rounds played until consensus or absorption, by where a run ends."""
    consensus = "consensus_round" in part
    rounds = part["consensus_round" if consensus else "absorbed_round"].values
    bins = whole_bins(rounds[np.isfinite(rounds)], BINS)
    for end in each_end(part, colours):
        label = with_runs(end.name, int(end.reached.sum()))
        ended = rounds[end.reached & np.isfinite(rounds)]
        if ended.size:
            axes.hist(ended, bins, **{"color": end.colour, "alpha": 0.6, "label": label, **style})
        elif end.reached.any():
            note(axes, label)
    whole_ticks(axes.xaxis, axes.yaxis)
    axes.set(xlabel=f"rounds until {'consensus' if consensus else 'absorption'}", ylabel="runs")


@draws("simulation minimal_naming_game_simulation", "outcomes", "n_agents! run: consensus_word; word: word")
@draws("protocol_simulation", "outcomes", "n_agents! run: absorbed_group", by=(), needs=ABSORBING)
@draws(
    "sweep",
    "outcomes",
    "seed n_agents!: done; seed n_agents run: consensus_word; word: word; : committed_word committed_agents",
    by=("policy", "case"),
)
def outcomes(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Fractions of runs by where they end against the number of agents, with Wilson's 95 % intervals; or bars."""
    case = _case(part)
    if case and str(part["committed_word"].item()) not in words_in(part):
        axes.text(0.5, 0.5, f"no such word:\n{case}", transform=axes.transAxes, ha="center", va="center")
        axes.set(xticks=[], yticks=[])
        return
    counted = xr.ones_like(ends_of(part), dtype=int) * part.get("done", 1)
    sizes, runs, ends = part["n_agents"].values, _total(counted), each_end(part, colours)
    shares = [_total(counted * end.reached) / np.maximum(runs, 1) for end in ends]
    if not shares[-1].any():  # fractions sum to 1: that no run is without consensus can be seen
        ends, shares = ends[:-1], shares[:-1]
    done = runs > 0
    if not done.all():
        note(axes, "not done: N = " + ", ".join(f"{size:,}" for size in sizes[~done]))
    for place, (end, share) in enumerate(zip(ends, shares, strict=True)):
        low, high = wilson(share, runs)
        if len(sizes) > 1:
            look = {"color": end.colour, "marker": end.marker, "fmt": "-", "label": end.name, **style}
            error_bars(axes, sizes[done], share[done], low[done], high[done], **look)
        else:
            axes.bar(place, share, **{"color": end.colour, **style})
            error_bars(axes, [place], share, low, high, fmt="none", color="black")
    if len(sizes) > 1:
        show_sizes(axes, sizes)
        if case:
            axes.legend(title=case)
    else:
        axes.set_xticks(range(len(ends)), [end.name for end in ends])
        where = "word of consensus" if "consensus_word" in part else "group at the end"
        told = ", ".join(text for text in (where, size_label(sizes[0]), case) if text)
        axes.set(xlim=(-0.75, len(ends) - 0.25), xlabel=told)
    show_shares(axes, "fraction of runs")


def _case(part: xr.Dataset) -> str:
    """The committed agents of one case of a sweep, '' where there are none."""
    if "committed_word" not in part.coords or not part["committed_word"].item():
        return ""
    return f"{part['committed_agents'].item()} committed to '{part['committed_word'].item()}'"


def _total(counted: xr.DataArray) -> np.ndarray:
    """Numbers of runs, seeds together, for each number of agents."""
    return counted.sum([dim for dim in counted.dims if dim != "n_agents"]).values


@draws("protocol_simulation", "final_count", "run state!: final_count; : n_agents", by=())
def final_count(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Fractions of agents in each state at the end, a point for each run."""
    fractions = (part["final_count"] / part["n_agents"]).values
    for number, values in enumerate(fractions.T):
        look = {"linestyle": "none", "marker": ".", "color": PALETTE[0], "alpha": 0.6, **style}
        axes.plot(number + aside(len(values), 0.5), values, **look)
    states = [str(state) for state in part["state"].values]
    axes.set_xticks(range(len(states)), states)
    show_shares(axes, "final fraction of agents", xlabel="state")


@draws(
    "consensus_times",
    "density",
    "consensus_time! word!+: density; word+: wins; : no_consensus",
    by=("model", "pair", "n_agents"),
)
def density(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Densities of the consensus time by winner, with the number of runs that each wins."""
    for number, word in enumerate(words_in(part)):
        one = part.isel(word=number)
        look = {"color": colours[word], "drawstyle": "steps-mid", "label": with_runs(word, int(one["wins"])), **style}
        axes.plot(one["consensus_time"], one["density"], **look)
    if (without := part["no_consensus"].item()) > 0:
        note(axes, f"no consensus: {100 * without:.3g} % of runs")
    axes.set(xlabel="consensus time (rounds from 0)", ylabel="density (1/round)")
    axes.set_ylim(bottom=0)


@draws("consensus_times", "mode", "n_agents! word!+: mode")
def mode(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The most frequent consensus time against the number of agents, by winner."""
    for number, word in enumerate(words_in(part)):
        modes = part["mode"].isel(word=number)
        label = word if modes.notnull().any() else f"{word}: no runs"
        look = {"color": colours[word], "marker": MARKERS[number % len(MARKERS)], "label": label, **style}
        axes.plot(modes["n_agents"], modes, **look)
    show_sizes(axes, part["n_agents"].values)
    axes.set_ylabel("most frequent time (rounds)")
    axes.set_ylim(bottom=0)


@draws("consensus_stability", "word_share", "n_agents! round!: word_share")
def held_share(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The mean share of the word on which all agreed at the start, for each number of agents."""
    share = part["word_share"]
    show_rounds(axes, float(share["round"][-1]))
    for one, size, colour in zip(share, share["n_agents"].values, size_colours(len(share)), strict=True):
        axes.plot(share["round"], one, **{"color": colour, "label": size_label(size), **style})
    show_shares(axes, f"mean share of '{part.attrs['held_word']}'")


@draws("consensus_stability", "held", "n_agents!: held moved; bound=low,high n_agents: interval")
def held(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Fractions of runs that still hold the word, and of those that agree on another, against the number of agents."""
    sizes = part["n_agents"].values
    look = {"fmt": "o-", "color": PALETTE[0], "label": f"hold '{part.attrs['held_word']}'", **style}
    error_bars(axes, sizes, part["held"], *part["interval"].values, **look)
    axes.plot(sizes, part["moved"], marker="s", color=NEUTRAL, label="agree on another word")
    show_sizes(axes, sizes, "fraction of runs")
