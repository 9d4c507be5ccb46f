"""Simulated runs by round, and agents on their network."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from meanfield._plot.curves import draw_band, draw_groups, draw_lines, draw_sizes, each_end, tell_lines, with_runs
from meanfield._plot.registry import draws
from meanfield._plot.scales import last_change, show_rounds, show_shares
from meanfield._plot.words import NEUTRAL, tinted, word_colours, words_in
from meanfield.toolbox._errors import InputError

BY_SIZE = ("model", "pair", "n_agents")
ROUNDS = "record_rounds=…"
MOST_NODES = 1000  # more take minutes to be placed, and can't be told apart
AREA = 1.5e4  # of all nodes, in square points


def _shares(axes: Axes, part: xr.Dataset, name: str, label: str, colours: dict[str, str], **style: Any) -> None:
    """A share (run, round, word) in the colours of the words in which the runs end."""
    shares = part[name].dropna("round", how="all")
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
            told = with_runs(end.name, int(end.reached.sum()))
            draw_band(axes, rounds, runs[end.reached], told, **{"color": end.colour, **style})
    tell_lines(axes, len(runs))
    show_shares(axes, f"{label} {which}")


def _of_winner(shares: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """The share (run, round) of the word in which each run ends; without consensus, of the largest at the end."""
    at_the_end = shares[:, -1].argmax(1) if shares.shape[1] else np.zeros(len(shares), int)
    winner = np.where(reached[-1], at_the_end, reached.argmax(0))
    return np.take_along_axis(shares, winner[:, None, None], axis=2)[..., 0]


@draws(
    "simulation",
    "trajectories",
    "run: consensus_word; run round! word!: word_share",
    by=BY_SIZE,
    needs={"word_share": f"{ROUNDS} or trajectories=True"},
)
def trajectories(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Runs by the word in which they end: the share of the first of two words, or of the winner if there are more.

    Means and bands between the 5th and 95th percentiles; at most 100 runs have lines of their own. Without consensus
    the largest word at the end stands for the winner.
    """
    _shares(axes, part, "word_share", "share of", colours, **style)


@draws(
    "minimal_naming_game_simulation",
    "trajectories",
    "run: consensus_word; run round! word!: single_share",
    needs={"single_share": ROUNDS},
)
def single_shares(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Shares of agents who hold one word only, drawn like word shares."""
    _shares(axes, part, "single_share", "agents with only", colours, **style)


@draws("protocol_simulation", "trajectories", "state!+ run round!: count; : n_agents", by=(), needs={"count": ROUNDS})
def counts(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Fractions of agents in each state."""
    states = [str(state) for state in part["state"].values]
    shades = word_colours([states]).values()
    draw_groups(axes, part["count"] / part["n_agents"], states, shades, "fraction of agents", thin=True, **style)


@draws(
    "simulation",
    "said",
    "run: consensus_word; run round! word!: said",
    by=BY_SIZE,
    needs={"said": f"record=['said'] and {ROUNDS}"},
)
def said(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Frequency of words among those said in a round, drawn like word shares."""
    _shares(axes, part, "said", "frequency of", colours, **style)


BY_ROUND = "n_agents! run round!: success_rate"


@draws("simulation", "success_rate", BY_ROUND, needs={"success_rate": f"record=['success_rate'] and {ROUNDS}"})
@draws("minimal_naming_game_simulation", "success_rate", BY_ROUND, needs={"success_rate": ROUNDS})
def success_rate(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of a round's interactions that succeed, for each number of agents."""
    draw_sizes(axes, part["success_rate"], "success rate", **style)


@draws(
    "protocol_simulation",
    "marked_share",
    "n_agents! run round!: marked_share",
    by=(),
    needs={"marked_share": f"marked transitions and {ROUNDS}"},
)
def marked_share(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of a round's interactions that are marked."""
    draw_sizes(axes, part["marked_share"], "marked interactions", **style)


@draws(
    "simulation",
    "network",
    "run! round! node! word!: node_word_share; edge end: edge_node",
    by=BY_SIZE,
    needs={"node_word_share": "record=['node_word_share']", "edge_node": "record=['node_word_share'] on one graph"},
)
def network(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The agents of the first run in its last round on their network, in the colour of their likeliest word."""
    try:
        import networkx
    except ImportError:
        raise InputError("view 'network' takes networkx to place agents: pip install networkx") from None
    share = part["node_word_share"].dropna("round", how="all")
    n_nodes = share.sizes["node"]
    if n_nodes > MOST_NODES:
        raise InputError(
            f"view 'network' of {n_nodes} nodes: expected {MOST_NODES} at most; view 'node_groups' draws large networks"
        )
    named = part["edge_node"].values
    ends = share.indexes["node"].get_indexer(named.ravel()).reshape(named.shape)
    if not share.size or ends.shape[1] != 2 or ends.min(initial=0) < 0:
        raise InputError("node_word_share is nowhere known, or edge_node has other nodes: expected all nodes and edges")
    graph = networkx.empty_graph(n_nodes)
    graph.add_edges_from(ends.tolist())
    place = networkx.spring_layout(graph, seed=0, k=3 / np.sqrt(max(n_nodes, 1)), iterations=200)
    at = np.array([place[node] for node in range(n_nodes)])
    axes.plot(*at[ends].transpose(2, 1, 0), color=NEUTRAL, linewidth=0.4, alpha=0.5, zorder=1)
    words = words_in(part)
    shades = tinted(share.values[0, -1], [colours[word] for word in words])
    look = {"c": shades, "s": AREA / max(n_nodes, 50), "edgecolors": NEUTRAL, "linewidths": 0.4}
    axes.scatter(*at.T, **{**look, **style})
    axes.set(xticks=[], yticks=[], xlabel=f"run {share['run'].values[0]}, round {share['round'].values[-1]}")
    axes.legend(handles=[Line2D([], [], color=colours[word], marker="o", linestyle="", label=word) for word in words])


@draws(
    "simulation",
    "node_groups",
    "node_group!+ run round! word!: group_word_share",
    by=BY_SIZE,
    needs={"group_word_share": "record=['group_word_share'] and node_groups"},
)
def node_groups(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of the first word in each group of nodes: means of the runs, and their 5th to 95th percentiles."""
    groups, label = [str(group) for group in part["node_group"].values], f"share of '{words_in(part)[0]}'"
    shades = word_colours([groups]).values()
    draw_groups(axes, part["group_word_share"].isel(word=0), groups, shades, label, **style)
