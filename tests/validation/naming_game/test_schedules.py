"""Matchings and hyperedges: exact chains of four agents, and known limits.

Error budget: each stochastic comparison fails for one seed in ten thousand, and has a control that must be rejected.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import meanfield
import validation
from _exact_games import ExactGame, agreement
from _metastable import alike, ends, follower
from _policies import random_policy
from meanfield import InputError, Population
from meanfield.core import HEARS
from validation.naming_game import LazyPolicy

UNLIKELY = 1e-4
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
        validation.simulate(POLICY, n_agents=4, runs=2, seed=1, **options)


def test_matchings_are_of_pairs_who_meet_alike():
    lazy = LazyPolicy(lambda memory: [[0.5, 0.5]] * len(memory), ["a", "b"], 1)
    meets = Population([POLICY, POLICY], [0.5, 0.5], meets=np.array([[2.0, 1.0], [1.0, 2.0]]))
    for policy in (lazy, meets, Population(POLICY, group=3), Population(POLICY, hears="vote")):
        with pytest.raises(InputError, match=r"schedule = 'matching' beside .*: expected 'asynchronous'"):
            validation.simulate(policy, n_agents=4, runs=2, seed=1, schedule="matching")
    with pytest.raises(InputError, match=r"topology beside .* meets in groups: expected one of the two"):
        validation.simulate(Population(POLICY, group=3), n_agents=4, runs=2, seed=1, topology=[{0, 1, 2}, {2, 3}])
