"""Agents on graphs: exact chains on small ones, the law of everybody on complete ones, and graphs that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import _exact_games
import meanfield
import validation
from _exact_games import ExactGame
from _metastable import follower
from _policies import random_policy
from meanfield import InputError
from validation._engine.topology import graph_of
from validation.naming_game import LazyPolicy

networkx = pytest.importorskip("networkx")
UNLIKELY = 1e-4  # a test of this kind fails once in ten thousand seeds

CONNECTED = [graph for graph in networkx.graph_atlas_g()[8:19] if networkx.is_connected(graph)]
WEIGHTED = np.array([(0, 1, 0.2), (1, 2, 3.0), (2, 3, 1.0), (0, 2, 1.0)])


def agreement(policy, weights, rounds=2, agents=None, **options):
    """`_exact_games` for pairs of agents who meet with probabilities in proportion to `weights`."""
    exact = ExactGame(agents or [policy] * 4).one_by_one(weights, 4 * rounds)
    return _exact_games.agreement(policy, exact, rounds, **options)


def of_agents(graph):
    """Probabilities of edges where an agent at random picks one of its neighbours."""
    return {(i, j): 1 / graph.degree[i] + 1 / graph.degree[j] for i, j in graph.edges}


@pytest.mark.parametrize("graph", CONNECTED, ids=lambda graph: f"{graph.number_of_edges()} edges")
def test_every_connected_graph_of_four_agents_has_the_law_of_its_exact_chain(graph):
    policy = random_policy(3)
    assert agreement(policy, dict.fromkeys(graph.edges, 1.0), topology=graph) > UNLIKELY
    assert agreement(policy, of_agents(graph), topology=graph, pick="agent") > UNLIKELY


def test_weights_of_edges_are_rates():
    policy, edges = random_policy(3), {(int(i), int(j)): weight for i, j, weight in WEIGHTED}
    assert agreement(policy, edges, topology=WEIGHTED) > UNLIKELY
    assert agreement(policy, edges, topology=csr_array(np.triu(graph_matrix()))) > UNLIKELY
    assert agreement(policy, dict.fromkeys(edges, 1.0), topology=WEIGHTED) < 1e-12, "control: edges without weights"


def test_kinds_that_meet_have_the_law_of_their_exact_chain():
    """One agent of the first kind is committed; pairs of agents meet at the rates of their kinds."""
    first, second = random_policy(3), random_policy(4)
    agents = [first, second, second, meanfield.make_policy(np.zeros(5), ["a", "b"])]
    population = meanfield.Population(
        [first, second], [0.5, 0.5], committed={"b": [0.5, 0.0]}, meets=[[1.0, 3.0], [3.0, 0.2]]
    )
    rates = {(0, 3): 1, (0, 1): 3, (0, 2): 3, (1, 3): 3, (2, 3): 3, (1, 2): 0.2}
    assert agreement(population, rates, agents=agents) > UNLIKELY
    assert agreement(population, dict.fromkeys(rates, 1), agents=agents) < 1e-12, "control: all meet alike"
    alike = meanfield.Population([first, second], [0.5, 0.5], committed={"b": [0.5, 0.0]}, meets=np.ones((2, 2)))
    assert agreement(alike, dict.fromkeys(rates, 1), agents=agents) > UNLIKELY


def graph_matrix():
    matrix = np.zeros((4, 4))
    for i, j, weight in WEIGHTED:
        matrix[int(i), int(j)] = matrix[int(j), int(i)] = weight
    return matrix


def test_edges_are_drawn_in_proportion_to_their_weights():
    """Probabilities over nine orders of magnitude, as the table of aliases has them."""
    weights = 10 ** np.random.default_rng(1).uniform(-8, 1, 1000)
    path = np.column_stack([np.arange(1000), np.arange(1, 1001), weights])
    ends, threshold, other, *_ = graph_of(path, "edge").edges
    own = threshold / 2.0**64
    chances = (np.where(other == np.arange(1000), 1.0, own) + np.bincount(other, 1 - own, 1000) * 1.0) / 1000
    chances -= np.where(other == np.arange(1000), 1 - own, 0.0) / 1000
    np.testing.assert_allclose(chances[np.argsort(ends[:, 0])], weights / weights.sum(), rtol=1e-9, atol=1e-15)


def test_runs_depend_on_their_numbers_only():
    def simulate(runs, **options):
        graph = lambda n, seed: networkx.barabasi_albert_graph(n, 3, seed=seed)  # noqa: E731
        options |= {"n_agents": 60, "seed": 4, "max_rounds": 40, "committed": {"A": 6}, "record_rounds": 5}
        return validation.simulate(follower(0.02), runs=runs, topology=graph, **options)

    few, many = simulate(5), simulate(12)
    assert few.drop_attrs().identical(many.isel(run=slice(5)).drop_attrs())
    assert many.attrs["option_topology"] == "graphs of <lambda>"
    assert not few["word_share"].identical(simulate(5, committed_nodes="hubs")["word_share"])


def test_committed_agents_at_a_hub_are_heard_by_all():
    """On a star each interaction has the hub: one committed agent there wins, one at a leaf does not."""
    star = networkx.relabel_nodes(networkx.star_graph(19), {0: "hub"})
    options = {"n_agents": 20, "runs": 200, "seed": 1, "committed": {"A": 1}, "initial": "B", "max_rounds": 100}
    won = {}
    for nodes in ("hubs", ["hub"], [7]):
        runs = validation.simulate(follower(0.0), topology=star, committed_nodes=nodes, **options)
        won[str(nodes)] = (runs["consensus_word"] == "A").mean().item()
    assert won["hubs"] == won["['hub']"] == 1.0
    assert won["[7]"] == 0.0


@pytest.mark.parametrize(
    ("topology", "complaint"),
    [
        (networkx.Graph(), "is an empty graph"),
        (networkx.empty_graph(3), r"has nodes without neighbours \(0, 1, 2\)"),
        (networkx.Graph([("a", "a"), ("a", "b")]), r"has edges from nodes to themselves \(a\)"),
        (networkx.Graph([(0, 1, {"weight": "far"})]), "has an edge whose weight is no number"),
        (networkx.Graph([(0, 1), (2, 3)]), "has 2 parts without an edge between them, of 2, 2 nodes"),
        (np.array([("a", "b")]), r"numbers from 0 on: networkx.from_edgelist\(edges\)"),
        (np.array([(0.5, 1.0)]), "other nodes than numbers"),
        ([(0, 1), (1, 2, 3.0)], "expected a graph of networkx"),
        (np.array([(0, 1, -1.0)]), "has edges of weight -1"),
        (np.array([(0, 1, 0.0)]), "has edges of weight 0"),
        (csr_array(np.ones((2, 3))), r"a matrix of shape \(2, 3\)"),
        (networkx.path_graph(5), "has 5 nodes: expected one for each of 4 agents"),
        (lambda n: networkx.path_graph(n), r"fails with TypeError .*: expected a function of the number of agents"),
        (lambda n, seed: networkx.path_graph(n + 1), "has 5 nodes"),
        (7, "expected a graph of networkx"),
        ([(0, 4_000_000_000)], "has 1 edges and a node 4e"),
        ([(0, np.inf)], "has 1 edges and a node inf|numbers from 0 on"),
    ],
)
def test_what_is_no_connected_graph_is_refused(topology, complaint):
    with pytest.raises(InputError, match=f"topology.*{complaint}"):
        validation.simulate(random_policy(1), n_agents=4, runs=2, seed=1, topology=topology)


def test_arguments_of_graphs_are_checked():
    path, policy = networkx.path_graph(4), random_policy(1)
    for options, complaint in (
        ({"pick": "node", "topology": path}, "pick = 'node': expected one of edge, agent"),
        ({"pick": "agent", "committed_nodes": [1]}, "pick and committed_nodes without a topology"),
        ({"topology": path, "committed": {"a": 1}, "committed_nodes": [9]}, "committed_nodes has .9.: expected nodes"),
        ({"topology": path, "committed": {"a": 2}, "committed_nodes": [1, 1]}, "expected different nodes"),
        ({"topology": path, "committed": {"a": 1}, "committed_nodes": [1, 2]}, "one for each of 1 committed agents"),
        ({"topology": path, "committed": {"a": 1}, "committed_nodes": 7}, "committed_nodes = 7: expected a sequence"),
        ({"topology": path, "committed": {"a": 1}, "committed_nodes": [[0]]}, "expected a sequence of nodes"),
        ({"topology": path, "committed_nodes": "leaves"}, "expected 'hubs' or a sequence of nodes"),
    ):
        with pytest.raises(InputError, match=complaint):
            validation.simulate(policy, n_agents=4, runs=2, seed=1, **options)
    lazy = LazyPolicy(lambda memory: {"a": 0.5, "b": 0.5}, ["a", "b"], 1)
    with pytest.raises(InputError, match="topology beside a LazyPolicy"):
        validation.simulate(lazy, n_agents=4, runs=2, seed=1, topology=path)
