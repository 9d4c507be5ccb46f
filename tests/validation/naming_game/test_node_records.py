"""Records by nodes of a graph: all follow exactly from the word share at each node."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import meanfield
from _policies import random_policy
from meanfield import InputError
from meanfield.toolbox import words_of
from validation import simulate

networkx = pytest.importorskip("networkx")

POLICY = random_policy(3, 3, 2, concentration=0.3)
BY_NODE = ["word_share", "interface_density", "group_word_share", "node_word_share"]
GRID = networkx.grid_2d_graph(3, 4)
ROWS = {(i, j): f"row {i}" for i, j in GRID}
OPTIONS = {"runs": 6, "seed": 2, "max_rounds": 5, "record_rounds": 5, "record": BY_NODE}


def grid(**options) -> xr.Dataset:
    return simulate(POLICY, **({"n_agents": 12, "topology": GRID, "node_groups": ROWS, **OPTIONS} | options))


def test_shares_of_groups_and_of_all_are_means_over_nodes():
    """From the start on; and what is recorded changes no run."""
    runs = grid()
    assert runs["node"].values.tolist() == [str(node) for node in GRID]
    assert runs["node_group"].values.tolist() == ["row 0", "row 1", "row 2"]
    assert runs["group_word_share"].dims == ("n_agents", "run", "round", "node_group", "word")
    by_group = runs["node_word_share"].groupby(xr.DataArray([*ROWS.values()], dims="node", name="node_group")).mean()
    xr.testing.assert_allclose(by_group.transpose(..., "node_group", "word"), runs["group_word_share"])
    xr.testing.assert_allclose(runs["node_word_share"].mean("node"), runs["word_share"])
    plain = grid(record=["word_share"], node_groups=None)
    xr.testing.assert_identical(plain["word_share"], runs["word_share"])
    in_order = grid(node_groups=[ROWS[node] for node in GRID])
    xr.testing.assert_identical(in_order["group_word_share"], runs["group_word_share"])


@pytest.mark.parametrize(
    "edges",
    [list(GRID.edges), [{0, 1, 2, 3}, {3, 4}, {4, 5, 6}, {6, 7, 8, 9, 10, 11}]],
    ids=["edges", "hyperedges"],
)
def test_interfaces_are_edges_whose_ends_differ(edges):
    number = {node: k for k, node in enumerate(GRID)}
    topology = edges if isinstance(edges[0], set) else GRID
    runs = grid(topology=topology, node_groups=[0] * 12)
    q, density = runs["node_word_share"], 0.0
    for members in edges:
        places = [number.get(node, node) for node in members]
        density = density + (1 - q.isel(node=places).prod("node").sum("word")) / len(edges)
    np.testing.assert_allclose(runs["interface_density"], density)
    assert runs["interface_density"].std() > 0.01


def test_interfaces_without_a_graph_are_pairs_that_differ():
    first, second, _ = words_of(POLICY)
    committed = {first: 3, second: 5}
    runs = simulate(POLICY, n_agents=8, committed=committed, **OPTIONS | {"record": ["interface_density"]})
    np.testing.assert_allclose(runs["interface_density"], 2 * 3 * 5 / (8 * 7))


def test_groups_are_those_of_each_graph():
    """Labels by names of nodes, in another order in each run; committed agents are in one group."""

    def shuffled(n_agents, seed):
        graph = networkx.Graph()
        graph.add_nodes_from(np.random.default_rng(seed).permutation(n_agents).tolist())
        graph.add_edges_from(networkx.path_graph(n_agents).edges)
        return graph

    word, groups = words_of(POLICY)[0], {k: "first" if k < 4 else "rest" for k in range(12)}
    where = {"committed": {word: 4}, "committed_nodes": [3, 1, 0, 2], "record": ["group_word_share"]}
    runs = grid(n_agents=[10, 12], topology=shuffled, node_groups=groups, **where)
    shares = runs["group_word_share"].sel(word=word)
    assert (shares.sel(node_group="first") == 1).all() and (shares.sel(node_group="rest") < 1).all()


def test_committed_agents_stand_at_nodes_with_names(tmp_path):
    """A corner of the grid says the word from the start, in every run; it is saved and loaded as it is."""
    word = words_of(POLICY)[1]
    runs = grid(committed={word: 2}, committed_nodes=[(2, 3), (0, 0)])
    says = (runs["node_word_share"].sel(word=word) == 1).all(["n_agents", "run", "round"])
    assert says["node"].values[says.values].tolist() == ["(0, 0)", "(2, 3)"]
    assert runs.attrs["option_committed_nodes"] == "[(2, 3), (0, 0)]"
    xr.testing.assert_identical(runs, meanfield.load(meanfield.save(runs, tmp_path / "runs.nc")))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"node_groups": None}, r"node_groups without record = \['group_word_share'\], or the other way round"),
        ({"record": ["said"]}, "node_groups without record"),
        ({"topology": None}, "record of 'node_word_share' without a topology"),
        ({"topology": None, "record": ["group_word_share"]}, "node_groups without a topology"),
        ({"node_groups": ["a"] * 11}, "node_groups has 11 labels: expected one for each of 12 nodes"),
        ({"node_groups": {(0, 0): "a"}}, "node_groups lacks .*: expected a label for each node"),
        ({"node_groups": [0.5] * 12}, "node_groups = .*: expected a label for each node, all strings or all whole"),
        ({"node_groups": ["a", 1] * 6}, "node_groups = .*: expected a label for each node, all strings or all whole"),
        ({"node_groups": "a" * 12}, "node_groups = .*: expected a label for each node"),
        ({"node_groups": 3}, "node_groups = 3: expected a label for each node"),
        ({"n_agents": [12, 13]}, "topology has 12 nodes"),
        ({"n_agents": [4, 5], "topology": lambda n, seed: networkx.path_graph(n)}, "expected one number of agents"),
        ({"max_rounds": 10**9, "record_rounds": 10**9}, "GiB of memory.*fewer rounds to record"),
    ],
)
def test_wrong_input_is_named(options, complaint, unchecked_types):
    with pytest.raises(InputError, match=complaint):
        grid(**options)
