"""Agents on a network, and groups of nodes, as they are drawn."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from matplotlib.colors import same_color, to_rgb

import meanfield
import validation
from meanfield import InputError
from meanfield._plot.words import PALETTE

# Agents who say A for ever once they have heard it last, and B otherwise.
COPY = meanfield.make_policy(np.array([0.5, 1, 0, 1, 0]), ["A", "B"])
BORDER = networkx.path_graph(8)


def played(**options):
    return validation.simulate(
        COPY,
        n_agents=8,
        runs=3,
        seed=1,
        max_rounds=3,
        topology=BORDER,
        record_rounds=3,
        record=["node_word_share", "group_word_share"],
        node_groups=["low"] * 4 + ["high"] * 4,
        **options,
    )


def test_agents_have_the_colour_of_their_word() -> None:
    runs = played()
    axes = meanfield.plot(runs, view="network")
    (dots,) = [one for one in axes.collections if len(one.get_offsets()) == 8]
    share = runs["node_word_share"].isel(n_agents=0, run=0, round=-1).values
    for colour, q in zip(dots.get_facecolors(), share, strict=True):
        hue = np.array(to_rgb(PALETTE[q.argmax()]))
        assert same_color(colour[:3], 1 - (2 * q.max() - 1) * (1 - hue))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["A", "B"]
    assert axes.get_xlabel() == "run 0, round 3"
    assert len(axes.get_lines()) == BORDER.number_of_edges()
    np.testing.assert_array_equal(runs["edge_node"], [[k, k + 1] for k in range(7)])


def test_edges_join_nodes_by_their_labels() -> None:
    """The agent at the end of a path has one edge, in whatever order nodes are listed."""
    axes = meanfield.plot(played().isel(node=[3, 0, 1, 2, 4, 5, 6, 7]), view="network")
    (dots,) = [one for one in axes.collections if len(one.get_offsets()) == 8]
    edges = np.concatenate([line.get_xydata() for line in axes.get_lines()])
    numbers = [(np.abs(edges - at).max(1) < 1e-9).sum() for at in dots.get_offsets()]
    assert numbers == [2, 1, 2, 2, 2, 2, 2, 1]


def test_groups_have_their_means() -> None:
    runs = played()
    axes = meanfield.plot(runs, view="node_groups")
    lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    for group in ("low", "high"):
        share = runs["group_word_share"].isel(n_agents=0, word=0).sel(node_group=group).mean("run")
        np.testing.assert_allclose(lines[group], share)


def test_networks_that_are_not_drawn() -> None:
    with pytest.raises(InputError, match="edge_node"):
        meanfield.plot(played().drop_vars("edge_node"), view="network")
    large = validation.simulate(
        COPY,
        n_agents=1200,
        runs=1,
        seed=1,
        max_rounds=1,
        topology=networkx.cycle_graph(1200),
        record_rounds=1,
        record=["node_word_share"],
    )
    with pytest.raises(InputError, match="of 1200 nodes: expected 1000 at most"):
        meanfield.plot(large, view="network")
