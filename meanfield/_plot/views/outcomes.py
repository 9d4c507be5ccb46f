"""Where simulated runs end, and when."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.intervals import error_bars, wilson
from meanfield._plot.registry import draws
from meanfield._plot.runs import End, each_end, ends_of, with_runs
from meanfield._plot.scales import show_shares, show_sizes, size_label
from meanfield._plot.words import PALETTE, words_in

Colours = dict[str, str]
BINS = 40
ABSORBING = {"absorbed_group": "absorbing=…"}


@draws(
    "simulation",
    "minimal_naming_game_simulation",
    view="times",
    by=("model", "pair", "n_agents"),
    reads="run: consensus_round consensus_word; word: word",
)
@draws("protocol_simulation", view="times", by=(), needs=ABSORBING, reads="run: absorbed_round absorbed_group")
def times(axes: Axes, part: xr.Dataset, colours: Colours, **style: Any) -> None:
    """Histogram of the rounds played until consensus or absorption, by where a run ends."""
    consensus = "consensus_round" in part
    rounds = part["consensus_round" if consensus else "absorbed_round"].values
    bins = _bins(rounds[np.isfinite(rounds)])
    for end in each_end(part, colours):
        label = with_runs(end.name, int(end.reached.sum()))
        ended = rounds[end.reached & np.isfinite(rounds)]
        if ended.size:
            axes.hist(ended, bins, **{"color": end.colour, "alpha": 0.6, "label": label, **style})
        elif end.reached.any():
            axes.plot([], [], " ", label=label)
    axes.set_xlabel(f"rounds until {'consensus' if consensus else 'absorption'}")
    axes.set_ylabel("runs")


@draws(
    "simulation",
    "minimal_naming_game_simulation",
    view="outcomes",
    reads="n_agents: n_agents; n_agents run: consensus_word; word: word",
)
@draws("protocol_simulation", view="outcomes", by=(), needs=ABSORBING, reads=": n_agents; run: absorbed_group")
@draws(
    "sweep",
    view="outcomes",
    by=("policy", "case"),
    reads="n_agents: n_agents; seed n_agents: done; seed n_agents run: consensus_word; word: word; "
    ": committed_word committed_agents",
)
def outcomes(axes: Axes, part: xr.Dataset, colours: Colours, **style: Any) -> None:
    """Fractions of runs by where they end against the number of agents, with Wilson's 95 % intervals; or bars."""
    case = _case(part)
    if case and str(part["committed_word"].item()) not in words_in(part):
        axes.text(0.5, 0.5, f"no such word:\n{case}", transform=axes.transAxes, ha="center", va="center")
        axes.set(xticks=[], yticks=[])
        return
    counted = xr.ones_like(ends_of(part), dtype=int) * part.get("done", 1)
    sizes, runs, ends = np.atleast_1d(part["n_agents"].values), _total(counted), each_end(part, colours)
    shares = [_total(counted * end.reached) / np.maximum(runs, 1) for end in ends]
    if not shares[-1].any():  # fractions sum to 1: that no run is without consensus can be seen
        ends, shares = ends[:-1], shares[:-1]
    if not runs.all():
        axes.plot([], [], " ", label="not done: N = " + ", ".join(f"{size:,}" for size in sizes[runs == 0]))
    if len(sizes) > 1:
        _points(axes, ends, sizes, shares, runs, **style)
        if case:
            axes.legend(title=case)
    else:
        _bars(axes, ends, shares, runs, **style)
        where = "word of consensus" if "consensus_word" in part else "group at the end"
        axes.set_xlabel(", ".join(text for text in (where, size_label(sizes[0]), case) if text))
    show_shares(axes, "fraction of runs")


@draws("protocol_simulation", view="final_count", by=(), reads="state: state; run state: final_count; : n_agents")
def final_count(axes: Axes, part: xr.Dataset, colours: Colours, **style: Any) -> None:
    """Fractions of agents in each state at the end, a point for each run."""
    fractions = part["final_count"].transpose("run", "state").values / part["n_agents"].values
    states = [str(state) for state in part["state"].values]
    # Runs that end alike would hide each other.
    aside = np.linspace(-0.25, 0.25, len(fractions)) if len(fractions) > 1 else np.zeros(1)
    for number, values in enumerate(fractions.T):
        look = {"linestyle": "none", "marker": ".", "color": PALETTE[0], "alpha": 0.6, **style}
        axes.plot(number + aside, values, **look)
    axes.set_xticks(range(len(states)), states)
    axes.set_xlabel("state")
    show_shares(axes, "final fraction of agents")


def _points(
    axes: Axes, ends: list[End], sizes: np.ndarray, shares: list[np.ndarray], runs: np.ndarray, **style: Any
) -> None:
    """The fraction that ends in each way against the number of agents, where any run is done."""
    order = np.argsort(sizes)[runs[np.argsort(sizes)] > 0]
    for end, share in zip(ends, shares, strict=True):
        low, high = wilson(share, runs)
        look = {"color": end.colour, "marker": end.marker, "fmt": "-", "label": end.name, **style}
        error_bars(axes, sizes[order], share[order], low[order], high[order], **look)
    show_sizes(axes, sizes)


def _bars(axes: Axes, ends: list[End], shares: list[np.ndarray], runs: np.ndarray, **style: Any) -> None:
    """A bar for each way in which runs of one number of agents end."""
    for place, (end, share) in enumerate(zip(ends, shares, strict=True)):
        axes.bar(place, share, **{"color": end.colour, **style})
        error_bars(axes, np.array([place]), share, *wilson(share, runs), fmt="none", color="black")
    axes.set_xticks(range(len(ends)), [end.name for end in ends])
    axes.set_xlim(-0.75, len(ends) - 0.25)


def _case(part: xr.Dataset) -> str:
    """The committed agents of one case of a sweep, '' where there are none."""
    if "committed_word" not in part.coords or not part["committed_word"].item():
        return ""
    return f"{part['committed_agents'].item()} committed to '{part['committed_word'].item()}'"


def _total(counted: xr.DataArray) -> np.ndarray:
    """Numbers of runs, seeds together, for each number of agents."""
    return np.atleast_1d(counted.sum([dim for dim in counted.dims if dim != "n_agents"]).values)


def _bins(rounds: np.ndarray) -> np.ndarray:
    """Edges of bins of whole rounds around whole numbers, at most 40 of them."""
    first, last = (np.floor(rounds.min()), np.ceil(rounds.max())) if rounds.size else (0, 0)
    width = max(1, int(np.ceil((last - first + 1) / BINS)))
    return np.arange(first, last + width + 1, width) - 0.5
