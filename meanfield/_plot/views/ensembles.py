"""Simulated runs by round."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.registry import draws
from meanfield._plot.runs import draw_band, draw_lines, each_end, tell_lines, with_runs
from meanfield._plot.scales import last_change, show_rounds, show_shares, size_colours, size_label
from meanfield._plot.size_curves import along_sizes, by_round
from meanfield._plot.words import word_colours, words_in

Colours = dict[str, str]
BY_SIZE = ("model", "pair", "n_agents")
ROUNDS = "record_rounds=…"


@draws(
    "simulation",
    view="trajectories",
    by=BY_SIZE,
    needs={"word_share": f"{ROUNDS} or trajectories=True"},
    reads="run: consensus_word; round: round; run round word: word_share; word: word",
)
def trajectories(axes: Axes, part: xr.Dataset, colours: Colours, **style: Any) -> None:
    """Runs by the word in which they end: the share of the first of two words, or of the winner if there are more.

    Means and bands between the 5th and 95th percentiles; at most 100 runs have lines of their own. Without consensus
    the largest word at the end stands for the winner.
    """
    _shares(axes, part, "word_share", "share of", colours, **style)


@draws(
    "minimal_naming_game_simulation",
    view="trajectories",
    needs={"single_share": ROUNDS},
    reads="run: consensus_word; round: round; run round word: single_share; word: word",
)
def single_shares(axes: Axes, part: xr.Dataset, colours: Colours, **style: Any) -> None:
    """Shares of agents who hold one word only, drawn like word shares."""
    _shares(axes, part, "single_share", "agents with only", colours, **style)


@draws(
    "protocol_simulation",
    view="trajectories",
    by=(),
    needs={"count": ROUNDS},
    reads="run round state+: count; round: round; state: state; : n_agents",
)
def counts(axes: Axes, part: xr.Dataset, colours: Colours, **style: Any) -> None:
    """Fractions of agents in each state."""
    fractions = by_round((part["count"] / part["n_agents"]).transpose("state", "run", "round"))
    rounds, states = fractions["round"].values, [str(state) for state in part["state"].values]
    colours = word_colours([states])
    show_rounds(axes, last_change(rounds, np.moveaxis(fractions.values, -1, 0)))
    for runs, state in zip(fractions.values, states, strict=True):
        draw_lines(axes, rounds, runs, [colours[state]] * len(runs))
        draw_band(axes, rounds, runs, state, **{"color": colours[state], **style})
    tell_lines(axes, fractions.sizes["run"])
    show_shares(axes, "fraction of agents")


@draws(
    "simulation",
    view="said",
    by=BY_SIZE,
    needs={"said": f"record=['said'] and {ROUNDS}"},
    reads="run: consensus_word; round: round; run round word: said; word: word",
)
def said(axes: Axes, part: xr.Dataset, colours: Colours, **style: Any) -> None:
    """Frequency of words among those said in a round, drawn like word shares."""
    _shares(axes, part, "said", "frequency of", colours, **style)


@draws(
    "simulation",
    view="success_rate",
    needs={"success_rate": f"record=['success_rate'] and {ROUNDS}"},
    reads="n_agents: n_agents; round: round; n_agents run round: success_rate",
)
@draws(
    "minimal_naming_game_simulation",
    view="success_rate",
    needs={"success_rate": ROUNDS},
    reads="n_agents: n_agents; round: round; n_agents run round: success_rate",
)
def success_rate(axes: Axes, part: xr.Dataset, colours: Colours, **style: Any) -> None:
    """The share of a round's interactions that succeed, for each number of agents."""
    _by_size(axes, part["success_rate"], "success rate", **style)


@draws(
    "protocol_simulation",
    view="marked_share",
    by=(),
    needs={"marked_share": f"marked transitions and {ROUNDS}"},
    reads="n_agents: n_agents; round: round; n_agents run round: marked_share",
)
def marked_share(axes: Axes, part: xr.Dataset, colours: Colours, **style: Any) -> None:
    """The share of a round's interactions that are marked."""
    _by_size(axes, part["marked_share"], "marked interactions", **style)


def _shares(axes: Axes, part: xr.Dataset, name: str, label: str, colours: Colours, **style: Any) -> None:
    """A share (run, round, word) in the colours of the words in which the runs end."""
    shares = part[name].transpose("run", "round", "word").dropna("round", how="all").sortby("round")
    rounds, words, ends = shares["round"].values, words_in(part), each_end(part, colours)
    reached = np.stack([end.reached for end in ends])
    if len(words) == 2:
        runs, which = shares.values[..., 0], f"'{words[0]}'"
    else:
        runs, which = _of_winner(shares.values, reached), "the winner"
    show_rounds(axes, last_change(rounds, runs.T))
    draw_lines(axes, rounds, runs, [ends[number].colour for number in reached.argmax(0)])
    for end in ends:
        if end.reached.any():
            name = with_runs(end.name, int(end.reached.sum()))
            draw_band(axes, rounds, runs[end.reached], name, **{"color": end.colour, **style})
    tell_lines(axes, len(runs))
    show_shares(axes, f"{label} {which}")


def _of_winner(shares: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """The share (run, round) of the word in which each run ends; without consensus, of the largest at the end."""
    at_the_end = shares[:, -1].argmax(1) if shares.shape[1] else np.zeros(len(shares), int)
    winner = np.where(reached[-1], at_the_end, reached.argmax(0))
    return np.take_along_axis(shares, winner[:, None, None], axis=2)[..., 0]


def _by_size(axes: Axes, shares: xr.DataArray, label: str, **style: Any) -> None:
    """A share of the runs for each number of agents; round 0, in which nobody meets, has none."""
    shares = by_round(along_sizes(shares).transpose("n_agents", "run", "round")).dropna("round", how="all")
    rounds = shares["round"].values
    show_rounds(axes, last_change(rounds, np.moveaxis(shares.values, -1, 0)))
    for runs, size, colour in zip(shares.values, shares["n_agents"].values, size_colours(len(shares)), strict=True):
        draw_band(axes, rounds, runs, size_label(size), **{"color": colour, **style})
    show_shares(axes, label)
