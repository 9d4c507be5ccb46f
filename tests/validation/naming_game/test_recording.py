"""Records of rounds by `simulate`: the expected word share, the said words, and the share of agreements.

Error budget: each of the fewer than ten stochastic comparisons accepts a true statement with probability 1 - 1e-4, for
an arbitrary seed, and has a control that the same criterion must reject. All else is exact.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import norm

import validation
from _ensembles import ALPHA, GENERIC_Q, last_interaction_policy, two_words
from _policies import random_policy
from meanfield import Population
from validation import simulate

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
    np.testing.assert_array_equal(alone[BY_KIND].squeeze("agent_kind"), alone["word_share"])


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
