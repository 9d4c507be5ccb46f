"""Records of rounds by `simulate`: the expected word share, the said words, and the share of agreements.

Error budget: each of the fewer than ten stochastic comparisons accepts a true statement with probability 1 - 1e-4, for
an arbitrary seed, and has a control that the same criterion must reject. All else is exact.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm

import meanfield
import validation
from _ensembles import ALPHA, GENERIC_Q, last_interaction_policy, two_words
from _policies import random_policy
from meanfield import InputError, Population
from meanfield.toolbox import words_of
from validation import simulate

networkx = pytest.importorskip("networkx")

EVERYTHING = ("word_share", "said", "success_rate")
BY_KIND = "kind_word_share"
GENERIC = last_interaction_policy(two_words(GENERIC_Q))
THREE_WORDS = random_policy(3, 3, 2, concentration=0.3)
MIXED = Population([random_policy(0, 3, 2), THREE_WORDS], fractions=[0.4, 0.6])


RING = np.column_stack([np.arange(7), (np.arange(7) + 1) % 7])
# Half of the interactions, so that some runs stop early where nothing is recorded
EASY = validation.naming_game.Convention(0.5, first_test=4)


def play(**options: Any) -> xr.Dataset:
    games = {"policy": MIXED, "n_agents": [7, 12], "runs": 40, "seed": 5, "max_rounds": 12, "committed": {"c": 2}}
    arguments = games | {"convention": EASY} | options
    return simulate(arguments.pop("policy"), **arguments)


@cache
def recorded() -> xr.Dataset:
    return play(record=EVERYTHING, trajectories=True)


# --- the same runs, whatever is recorded ---


def test_recording_changes_nothing_else() -> None:
    whole = recorded()
    for record in (None, *([one] for one in EVERYTHING)):
        games = play(record=record, record_rounds=None if record is None else 9)
        assert set(EVERYTHING) & set(games.variables) == set(record or ())
        for variable in games.data_vars:
            rounds = slice(games.sizes.get("round"))
            xr.testing.assert_identical(games[variable], whole[variable].isel(round=rounds, missing_dims="ignore"))
    assert 0 < whole["consensus_round"].notnull().mean() < 1
    xr.testing.assert_identical(play(trajectories=True)["word_share"], whole["word_share"])


def test_word_shares_of_kinds_make_up_those_of_all() -> None:
    """At the start, on a graph and for one kind of agents as well; what is recorded changes no run."""
    options = {"n_agents": [7, 12], "record": [*EVERYTHING, BY_KIND], "record_rounds": 9}
    for games in (play(**options), play(**options | {"n_agents": 7, "topology": RING})):
        mean = (games[BY_KIND] * games["agents"]).sum("agent_kind") / games["agents"].sum("agent_kind")
        np.testing.assert_allclose(mean.transpose(*games["word_share"].dims), games["word_share"], rtol=1e-13)
        np.testing.assert_array_equal(games[BY_KIND].sel(agent_kind="committed to c", word="c"), 1)
    games = play(**options)
    for name in EVERYTHING:
        xr.testing.assert_identical(games[name], recorded()[name].sel(round=games["round"]))
    alone = play(policy=THREE_WORDS, committed=None, **options)
    np.testing.assert_allclose(alone[BY_KIND].squeeze("agent_kind"), alone["word_share"], rtol=1e-14)


# --- identities that every run obeys ---


def test_words_and_successes_are_counted_interaction_by_interaction() -> None:
    games = recorded().isel(round=slice(1, None))
    for n, game in games.groupby("n_agents"):
        said = game["said"].squeeze("n_agents") * 2 * n
        succeeded = game["success_rate"].squeeze("n_agents") * n
        np.testing.assert_allclose(said, said.round(), atol=1e-9)
        np.testing.assert_allclose(succeeded, succeeded.round(), atol=1e-9)
        np.testing.assert_allclose(said.sum("word"), 2 * n)
        # Successes use words up in twos, and a failure uses up two different words
        assert ((said // 2).round().sum("word") >= succeeded.round()).all()
        assert (n - succeeded.round() <= 2 * n - said.max("word").round()).all()
        assert 0.1 < game["success_rate"].mean() < 0.9


def test_consensus_is_that_of_the_recorded_success_rates() -> None:
    games = recorded()
    n = games["n_agents"]
    last_three = (games["success_rate"] * n).round().rolling(round=3).sum()
    needed = xr.DataArray([EASY.successes_needed(int(size)) for size in n.values], n.coords)
    converged = (last_three >= needed) & (games["round"] >= EASY.first_test)
    first = converged.idxmax("round").where(converged.any("round"))
    assert len(np.unique(first)) > 3
    np.testing.assert_array_equal(games["consensus_round"], first.transpose("n_agents", "run"))


def test_before_the_first_round_nothing_is_said() -> None:
    games = simulate(GENERIC, n_agents=[5, 3], runs=4, seed=1, max_rounds=6, record_rounds=2, record=EVERYTHING[::-1])
    assert games["said"].dims == games["word_share"].dims == ("n_agents", "run", "round", "word")
    assert games["success_rate"].dims == ("n_agents", "run", "round")
    assert games["round"].values.tolist() == [0, 1, 2]
    for name in ("said", "success_rate"):
        assert games[name].isel(round=0).isnull().all() and games[name].isel(round=slice(1, None)).notnull().all()
    assert games["word_share"].notnull().all()
    assert games.attrs["option_record"] == "word_share said success_rate"


def test_means_are_those_of_the_exact_chain() -> None:
    """The mean share of a word said in a round is the mean of Q before its interactions; agreements likewise."""
    policies = [random_policy(seed) for seed in (0, 1)]
    population, committed, n = Population(policies, fractions=[0.5, 0.5]), {"a": 1}, 5
    exact = validation.naming_game.exact_population(population, n, committed=committed, initial="b")
    laws = exact.law(interactions=np.arange(2 * n + 1)).values
    share, succeeds = laws @ exact.word_share[:, 0], laws @ exact.success.sum(1)
    options = {"committed": committed, "initial": "b", "max_rounds": 2, "record_rounds": 2, "record": EVERYTHING}
    games = simulate(population, n_agents=n, runs=60_000, seed=3, **options).isel(n_agents=0)
    limit = norm.isf(ALPHA / 2)
    for played in (1, 2):
        before = slice((played - 1) * n, played * n)
        for values, mean in (
            (games["said"].sel(round=played, word="a"), share[before].mean()),
            (games["success_rate"].sel(round=played), succeeds[before].mean()),
            (games["word_share"].sel(round=played, word="a"), share[played * n]),
        ):
            error = values.std().item() / np.sqrt(values.size)
            assert abs(values.mean().item() - mean) < limit * error
    said = games["said"].sel(round=1, word="a")
    assert abs(said.mean().item() - share[n]) > limit * said.std().item() / np.sqrt(said.size), "Q at the round's end"


# --- by nodes of a graph, all of which follows from the word share at each node ---

BY_NODE = ["word_share", "interface_density", "group_word_share", "node_word_share"]
GRID = networkx.grid_2d_graph(3, 4)
ROWS = {(i, j): f"row {i}" for i, j in GRID}
OPTIONS = {"runs": 6, "seed": 2, "max_rounds": 5, "record_rounds": 5, "record": BY_NODE}


def grid(**options) -> xr.Dataset:
    return simulate(THREE_WORDS, **({"n_agents": 12, "topology": GRID, "node_groups": ROWS, **OPTIONS} | options))


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
    first, second, _ = words_of(THREE_WORDS)
    committed = {first: 3, second: 5}
    runs = simulate(THREE_WORDS, n_agents=8, committed=committed, **OPTIONS | {"record": ["interface_density"]})
    np.testing.assert_allclose(runs["interface_density"], 2 * 3 * 5 / (8 * 7))


def test_groups_are_those_of_each_graph():
    """Labels by names of nodes, in another order in each run; committed agents are in one group."""

    def shuffled(n_agents, seed):
        graph = networkx.Graph()
        graph.add_nodes_from(np.random.default_rng(seed).permutation(n_agents).tolist())
        graph.add_edges_from(networkx.path_graph(n_agents).edges)
        return graph

    word, groups = words_of(THREE_WORDS)[0], {k: "first" if k < 4 else "rest" for k in range(12)}
    where = {"committed": {word: 4}, "committed_nodes": [3, 1, 0, 2], "record": ["group_word_share"]}
    runs = grid(n_agents=[10, 12], topology=shuffled, node_groups=groups, **where)
    shares = runs["group_word_share"].sel(word=word)
    assert (shares.sel(node_group="first") == 1).all() and (shares.sel(node_group="rest") < 1).all()


def test_committed_agents_stand_at_nodes_with_names(tmp_path):
    """A corner of the grid says the word from the start, in every run; it is saved and loaded as it is."""
    word = words_of(THREE_WORDS)[1]
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
