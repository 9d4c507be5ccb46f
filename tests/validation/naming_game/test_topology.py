"""Agents on graphs and hypergraphs, one by one and in matchings: exact chains of four agents, and known limits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm

import meanfield
import validation
from _exact_games import ExactGame, agreement
from _metastable import alike, ends, follower
from _policies import random_policy
from meanfield import InputError, Population
from meanfield.core import HEARS
from meanfield.toolbox import space_of
from validation._engine.topology import graph_of
from validation.naming_game import LazyPolicy

networkx = pytest.importorskip("networkx")
UNLIKELY = 1e-4  # a test of this kind fails once in ten thousand seeds

CONNECTED = [graph for graph in networkx.graph_atlas_g()[8:19] if networkx.is_connected(graph)]
WEIGHTED = np.array([(0, 1, 0.2), (1, 2, 3.0), (2, 3, 1.0), (0, 2, 1.0)])


def along(policy, weights, rounds=2, agents=None, **options):
    """`agreement` for pairs of agents who meet with probabilities in proportion to `weights`."""
    exact = ExactGame(agents or [policy] * 4).one_by_one(weights, 4 * rounds)
    return agreement(policy, exact, rounds, **options)


def of_agents(graph):
    """Probabilities of edges where an agent at random picks one of its neighbours."""
    return {(i, j): 1 / graph.degree[i] + 1 / graph.degree[j] for i, j in graph.edges}


@pytest.mark.parametrize("graph", CONNECTED, ids=lambda graph: f"{graph.number_of_edges()} edges")
def test_every_connected_graph_of_four_agents_has_the_law_of_its_exact_chain(graph):
    policy = random_policy(3)
    assert along(policy, dict.fromkeys(graph.edges, 1.0), topology=graph) > UNLIKELY
    assert along(policy, of_agents(graph), topology=graph, pick="agent") > UNLIKELY


def test_weights_of_edges_are_rates():
    policy, edges = random_policy(3), {(int(i), int(j)): weight for i, j, weight in WEIGHTED}
    assert along(policy, edges, topology=WEIGHTED) > UNLIKELY
    assert along(policy, edges, topology=csr_array(np.triu(graph_matrix()))) > UNLIKELY
    assert along(policy, dict.fromkeys(edges, 1.0), topology=WEIGHTED) < 1e-12, "control: edges without weights"


def test_kinds_that_meet_have_the_law_of_their_exact_chain():
    """One agent of the first kind is committed; pairs of agents meet at the rates of their kinds."""
    first, second = random_policy(3), random_policy(4)
    agents = [first, second, second, meanfield.make_policy(np.zeros(5), ["a", "b"])]
    population = meanfield.Population(
        [first, second], [0.5, 0.5], committed={"b": [0.5, 0.0]}, meets=[[1.0, 3.0], [3.0, 0.2]]
    )
    rates = {(0, 3): 1, (0, 1): 3, (0, 2): 3, (1, 3): 3, (2, 3): 3, (1, 2): 0.2}
    assert along(population, rates, agents=agents) > UNLIKELY
    assert along(population, dict.fromkeys(rates, 1), agents=agents) < 1e-12, "control: all meet alike"
    alike = meanfield.Population([first, second], [0.5, 0.5], committed={"b": [0.5, 0.0]}, meets=np.ones((2, 2)))
    assert along(alike, dict.fromkeys(rates, 1), agents=agents) > UNLIKELY


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


# --- matchings and hyperedges ---

POLICY = random_policy(3)
PAIRS = list(itertools.combinations(range(4), 2))
PATH, STAR, CYCLE = [(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3)], [(0, 1), (1, 2), (2, 3), (0, 3)]
TRIPLE = {(0, 1, 2): 1.0, (2, 3): 1.0}


@pytest.mark.parametrize("edges", [None, PATH, STAR, CYCLE, PAIRS], ids=str)
def test_matchings_of_four_agents_have_the_law_of_their_exact_chain(edges):
    exact = ExactGame([POLICY] * 4).in_matchings(edges or PAIRS, 2)
    topology = None if edges is None else np.array(edges)
    assert agreement(POLICY, exact, schedule="matching", topology=topology) > UNLIKELY
    assert agreement(POLICY, exact, topology=topology) < 1e-10 or edges is STAR, "control: one by one"


@pytest.mark.parametrize("complete", [False, True])
def test_each_agent_meets_once_in_a_matching(complete):
    """After a round of 24 agents all have met twice. Of 25 one is left out of each matching."""
    policy = meanfield.make_policy(lambda memory: 1 - 0.2 * len(memory), ["A", "B"], memory_length=4)
    for n, times in ((24, [2]), (25, [1, 2, 3])):
        topology = np.array(list(itertools.combinations(range(n), 2))) if complete else None
        options = {"n_agents": n, "runs": 50, "seed": 1, "max_rounds": 1, "record_rounds": 1, "topology": topology}
        if complete:
            found = validation.simulate(policy, schedule="matching", record=["node_word_share"], **options)
            met = (5 * (1 - found["node_word_share"].sel(round=1, word="A"))).round()
            assert np.unique(met).tolist() == times
        share = validation.simulate(policy, schedule="matching", **options)["word_share"].sel(round=1, word="A")
        np.testing.assert_allclose(share, 1 - 0.2 * 2)
        if n == 24:
            alike = validation.simulate(policy, **options, record=["node_word_share"]) if complete else None
            assert alike is None or len(np.unique(alike["node_word_share"].sel(round=1))) > 6, "control: one by one"


@pytest.mark.slow
def test_large_populations_in_matchings_follow_a_map():
    """Two steps a round from empty memories, where every agent meets once in each; they end as one by one."""
    policy, n, runs, rounds = random_policy(7, 2, 2), 20_000, 40, 12
    q, space = policy["q"].values, space_of(policy)
    share, compositions = np.eye(1, space.n_states)[0], []
    for step in range(2 * rounds + 1):
        if step % 2 == 0:
            compositions.append(share @ q[:, 0])
        said = (share[:, None, None] * q[:, :, None]) * (share @ q)[None, None, :]
        share = np.zeros(space.n_states)
        np.add.at(share, space.successors()[:, None, None] + 2 * np.arange(2)[:, None] + np.arange(2), said)

    def far(schedule):
        found = validation.simulate(
            policy, n_agents=n, runs=runs, seed=1, max_rounds=rounds, record_rounds=rounds, schedule=schedule
        )["word_share"].isel(n_agents=0, word=0)
        error = found.std("run", ddof=1) / np.sqrt(runs)
        return (abs(found.mean("run") - compositions) / (error + 1 / n)).isel(round=slice(1, None))

    assert far("matching").max() < norm.isf(UNLIKELY / 2 / rounds)
    assert far("asynchronous").max() > 20, "control"
    assert far("asynchronous").isel(round=-1) < 5, "the same fixed point"


@pytest.mark.parametrize("hears", HEARS)
def test_hyperedges_of_four_agents_have_the_law_of_their_exact_chain(hears):
    exact = ExactGame([POLICY] * 4, hears).one_by_one(TRIPLE, 8)
    population, topology = Population(POLICY, hears=hears), [set(one) for one in TRIPLE]
    assert agreement(population, exact, topology=topology) > UNLIKELY
    assert agreement(population, exact, topology=[*topology, {2, 3}]) < 1e-6, "control: the pair twice as often"
    by_agent = ExactGame([POLICY] * 4, hears).one_by_one({(0, 1, 2): 2.5, (2, 3): 1.5}, 8)
    assert agreement(population, by_agent, topology=topology, pick="agent") > UNLIKELY


def test_hyperedges_of_two_are_a_graph():
    edges = dict.fromkeys(CYCLE, 1.0)
    exact = ExactGame([POLICY] * 4).one_by_one(edges, 8)
    assert agreement(POLICY, exact, topology=[set(edge) for edge in CYCLE]) > UNLIKELY
    vote = ExactGame([POLICY] * 4, "vote").one_by_one(edges, 8)
    assert agreement(Population(POLICY, hears="vote"), vote, topology=np.array(CYCLE)) > UNLIKELY
    assert agreement(POLICY, vote, topology=np.array(CYCLE)) < 1e-10, "control: they hear each other"


@pytest.mark.parametrize("hears", HEARS)
def test_all_triples_are_groups_of_three(hears):
    options = {"n_agents": 12, "runs": 20_000, "seed": 2, "max_rounds": 40, "convention": "001"}
    mixed = ends(validation.simulate(Population(follower(0.02), group=3, hears=hears), **options), 2)
    for chain, close in (
        ([set(one) for one in itertools.combinations(range(12), 3)], True),
        ([{k, (k + 1) % 12, (k + 2) % 12} for k in range(12)], False),
    ):
        runs = validation.simulate(Population(follower(0.02), hears=hears), topology=chain, **options)
        p = alike(mixed, ends(runs, 2))
        assert p > UNLIKELY if close else p < 1e-10


def test_consensus_on_hyperedges_is_a_share_of_the_pairs_that_are_counted():
    """Success rates of rounds with different numbers of words said, recorded, and the round of consensus."""
    rule, topology = validation.naming_game.Convention(0.95), [set(range(8)), {0, 1}, {1, 2, 3}, {6, 7}]
    options = {"max_rounds": 30, "trajectories": True, "record": ["success_rate", "said"], "convention": rule}
    runs = validation.simulate(follower(0.02), n_agents=8, runs=200, seed=1, topology=topology, **options)
    runs = runs.isel(n_agents=0)
    mean = runs["success_rate"].rolling(round=3).mean()
    at_end = mean.sel(round=runs["consensus_round"].fillna(30).astype(int))
    assert runs["consensus_round"].notnull().mean() > 0.9
    assert at_end.where(runs["consensus_round"].notnull()).min() > 0.9, "rounds differ by their numbers of words alone"
    assert runs["consensus_round"].min() == 3 and len(np.unique(runs["consensus_round"])) > 5
    np.testing.assert_allclose(runs["said"].isel(round=slice(1, None)).sum("word"), 1)


def test_hypergraphs_of_xgi_have_names():
    xgi = pytest.importorskip("xgi")
    hypergraph = xgi.Hypergraph([["a", "b", "c"], ["c", "d"]])
    exact = ExactGame([POLICY] * 4).one_by_one(TRIPLE, 8)
    assert agreement(POLICY, exact, topology=hypergraph) > UNLIKELY
    options = {"n_agents": 4, "runs": 2, "seed": 1, "committed": {"a": 1}, "max_rounds": 3, "record_rounds": 3}
    runs = validation.simulate(
        POLICY, topology=hypergraph, committed_nodes=["d"], record=["node_word_share"], **options
    )
    assert runs["node"].values.tolist() == list("abcd")
    assert (runs["node_word_share"].sel(node="d", word="a") == 1).all()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"topology": networkx.Graph()}, r"topology.*is an empty graph"),
        ({"topology": networkx.empty_graph(3)}, r"topology.*has nodes without neighbours \(0, 1, 2\)"),
        ({"topology": networkx.Graph([("a", "a"), ("a", "b")])}, r"topology.*edges from nodes to themselves \(a\)"),
        ({"topology": networkx.Graph([(0, 1, {"weight": "far"})])}, r"topology.*has an edge whose weight is no number"),
        (
            {"topology": networkx.Graph([(0, 1), (2, 3)])},
            r"topology.*has 2 parts without an edge between them, of 2, 2",
        ),
        ({"topology": np.array([("a", "b")])}, r"topology.*numbers from 0 on: networkx.from_edgelist\(edges\)"),
        ({"topology": np.array([(0.5, 1.0)])}, r"topology.*other nodes than numbers"),
        ({"topology": [(0, 1), (1, 2, 3.0)]}, r"topology.*expected a graph of networkx"),
        ({"topology": np.array([(0, 1, -1.0)])}, r"topology.*has edges of weight -1"),
        ({"topology": np.array([(0, 1, 0.0)])}, r"topology.*has edges of weight 0"),
        ({"topology": csr_array(np.ones((2, 3)))}, r"topology.*a matrix of shape \(2, 3\)"),
        ({"topology": networkx.path_graph(5)}, r"topology.*has 5 nodes: expected one for each of 4 agents"),
        ({"topology": lambda n: networkx.path_graph(n)}, r"topology.*fails with TypeError .*: expected a function"),
        ({"topology": lambda n, seed: networkx.path_graph(n + 1)}, r"topology.*has 5 nodes"),
        ({"topology": 7}, r"topology.*expected a graph of networkx"),
        ({"topology": [(0, 4_000_000_000)]}, r"topology.*has 1 edges and a node 4e"),
        ({"topology": [(0, np.inf)]}, r"topology.*has 1 edges and a node inf|numbers from 0 on"),
        ({"pick": "node", "topology": PATH}, "pick = 'node': expected one of edge, agent"),
        ({"pick": "agent", "committed_nodes": [1]}, "pick and committed_nodes without a topology"),
        ({"topology": PATH, "committed": {"a": 1}, "committed_nodes": [9]}, "committed_nodes has .9.: expected nodes"),
        ({"topology": PATH, "committed": {"a": 2}, "committed_nodes": [1, 1]}, "expected different nodes"),
        ({"topology": PATH, "committed": {"a": 1}, "committed_nodes": [1, 2]}, "one for each of 1 committed agents"),
        ({"topology": PATH, "committed": {"a": 1}, "committed_nodes": 7}, "committed_nodes = 7: expected a sequence"),
        ({"topology": PATH, "committed": {"a": 1}, "committed_nodes": [[0]]}, "expected a sequence of nodes"),
        ({"topology": PATH, "committed_nodes": "leaves"}, "expected 'hubs' or a sequence of nodes"),
        ({"schedule": "synchronous"}, "schedule = 'synchronous': expected one of asynchronous, matching"),
        ({"schedule": "matching", "topology": [(0, 1, 1.0), (1, 2, 2.0), (2, 3, 1.0)]}, "meet at different rates"),
        ({"schedule": "matching", "topology": PATH, "pick": "agent"}, "meet at different rates"),
        ({"schedule": "matching", "topology": [{0, 1, 2}, {2, 3}]}, "topology has hyperedges: expected edges of two"),
        ({"topology": [{0, 1, 2}, {3}]}, "fewer than two nodes: expected at least two in each"),
        ({"topology": [{0, 1}, {2, 3}]}, "has 2 parts without an edge between them"),
        ({"topology": [{0, 1}, {1, 3}]}, r"has nodes without neighbours \(2\)"),
        ({"topology": [{0, 1}, {1, "c"}]}, "other nodes than numbers from 0 on: xgi.Hypergraph"),
        ({"topology": [{0, 1}, {1, 10**12}]}, "has 4 places in hyperedges and a node 1000000000000"),
        ({"topology": [{0, 1, 2}, {2, 3, 4}]}, "has 5 nodes: expected one for each of 4 agents"),
        ({"topology": [[0, 1, 2], [2, 3]]}, "a list of hyperedges that are sets"),
    ],
)
def test_what_can_not_be_played_is_refused(options, complaint):
    with pytest.raises(InputError, match=complaint):
        validation.simulate(POLICY, **{"n_agents": 4, "runs": 2, "seed": 1} | options)


def test_matchings_are_of_pairs_who_meet_alike():
    lazy = LazyPolicy(lambda memory: [[0.5, 0.5]] * len(memory), ["a", "b"], 1)
    meets = Population([POLICY, POLICY], [0.5, 0.5], meets=np.array([[2.0, 1.0], [1.0, 2.0]]))
    for policy in (lazy, meets, Population(POLICY, group=3), Population(POLICY, hears="vote")):
        with pytest.raises(InputError, match=r"schedule = 'matching' beside .*: expected 'asynchronous'"):
            validation.simulate(policy, n_agents=4, runs=2, seed=1, schedule="matching")
    with pytest.raises(InputError, match=r"topology beside .* meets in groups: expected one of the two"):
        validation.simulate(Population(POLICY, group=3), n_agents=4, runs=2, seed=1, topology=[{0, 1, 2}, {2, 3}])
