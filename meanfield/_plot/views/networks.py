"""Simulated runs on a network: agents at their places, and groups of nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D

from meanfield._plot.registry import draws
from meanfield._plot.runs import draw_band
from meanfield._plot.scales import last_change, show_rounds, show_shares
from meanfield._plot.size_curves import by_round
from meanfield._plot.words import NEUTRAL, word_colours, words_in
from meanfield.toolbox._errors import InputError

MOST_NODES = 1000  # more take minutes to be placed, and can't be told apart
BY_SIZE = ("model", "pair", "n_agents")
AREA = 1.5e4  # of all nodes, in square points


@draws(
    "simulation",
    view="network",
    by=BY_SIZE,
    needs={"node_word_share": "record=['node_word_share']", "edge_node": "record=['node_word_share'] on one graph"},
    reads="run round node word: node_word_share; round: round; edge end: edge_node; node: node; word: word; run: run",
)
def network(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The agents of the first run in its last round on their network, in the colour of their likeliest word."""
    try:
        import networkx
    except ImportError:
        raise InputError("view 'network' takes networkx to place agents: pip install networkx") from None
    share = by_round(part["node_word_share"]).transpose("run", "round", "node", "word").dropna("round", how="all")
    n_nodes = share.sizes["node"]
    if n_nodes > MOST_NODES:
        raise InputError(
            f"view 'network' of {n_nodes} nodes: expected {MOST_NODES} at most; view 'node_groups' draws large networks"
        )
    named = part["edge_node"].transpose("edge", "end").values
    ends = share.indexes["node"].get_indexer(named.ravel()).reshape(named.shape)
    if not share.size or ends.shape[1] != 2 or ends.min(initial=0) < 0:
        raise InputError("node_word_share is nowhere known, or edge_node has other nodes: expected all nodes and edges")
    graph = networkx.empty_graph(n_nodes)
    graph.add_edges_from(ends.tolist())
    place = networkx.spring_layout(graph, seed=0, k=3 / np.sqrt(max(n_nodes, 1)), iterations=200)
    at = np.array([place[node] for node in range(n_nodes)])
    axes.plot(*at[ends].transpose(2, 1, 0), color=NEUTRAL, linewidth=0.4, alpha=0.5, zorder=1)
    q, words = share.values[0, -1], words_in(part)
    likeliest, surest = q.argmax(1), q.max(1)
    hues = np.array([to_rgb(colours[word]) for word in words])[likeliest]
    sure = ((surest - 1 / len(words)) / (1 - 1 / len(words)))[:, None]
    look = {"c": 1 - sure * (1 - hues), "s": AREA / max(n_nodes, 50), "edgecolors": NEUTRAL, "linewidths": 0.4}
    axes.scatter(*at.T, **{**look, **style})
    axes.set(xticks=[], yticks=[], xlabel=f"run {share['run'].values[0]}, round {share['round'].values[-1]}")
    axes.legend(handles=[Line2D([], [], color=colours[word], marker="o", linestyle="", label=word) for word in words])


@draws(
    "simulation",
    view="node_groups",
    by=BY_SIZE,
    needs={"group_word_share": "record=['group_word_share'] and node_groups"},
    reads="run round node_group+ word: group_word_share; round: round; node_group: node_group; word: word",
)
def node_groups(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of the first word in each group of nodes: means of the runs, and their 5th to 95th percentiles."""
    shares = by_round(part["group_word_share"].isel(word=0).transpose("node_group", "run", "round"))
    rounds, groups = shares["round"].values, [str(group) for group in shares["node_group"].values]
    colours = word_colours([groups])
    show_rounds(axes, last_change(rounds, np.moveaxis(shares.values, -1, 0)))
    for runs, group in zip(shares.values, groups, strict=True):
        draw_band(axes, rounds, runs, group, **{"color": colours[group], **style})
    show_shares(axes, f"share of '{words_in(part)[0]}'")
