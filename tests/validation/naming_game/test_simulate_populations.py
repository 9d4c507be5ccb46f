"""Simulated populations of several policies, with committed agents, from other starts and to other conventions.

Error budget: the stochastic test accepts a true statement with probability 1 - 1e-3 for an arbitrary seed, and has a
control that the same criterion must reject.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import xarray as xr

import meanfield
import validation
from _policies import random_policy
from meanfield import InputError, Population
from validation import simulate
from validation.naming_game import Convention

POLICIES = [random_policy(seed) for seed in (0, 1)]


def q_of(policy: xr.Dataset) -> np.ndarray:
    return policy["q"].values


def test_fractions_become_the_closest_whole_numbers() -> None:
    population = Population(POLICIES, fractions=[0.25, 0.75], committed={"b": 0.1})
    with pytest.warns(UserWarning, match=r"N = 10: 2 random 0 for 2\.25, .*; N = 25: .*, 2 committed to b for 2\.5$"):
        runs = simulate(population, n_agents=[10, 25, 1000], runs=1, seed=0, max_rounds=1)
    assert runs["agents"].values.tolist() == [[2, 7, 1], [6, 17, 2], [225, 675, 100]]
    assert runs["agent_kind"].values.tolist() == ["random 0", "random 1", "committed to b"]
    assert runs.attrs["option_committed"] == "b:1,2,100"
    options = {"runs": 2, "seed": 0, "max_rounds": 1, "record_rounds": 0, "initial": "b", "committed": {"a": 3}}
    joined = simulate(POLICIES[0], n_agents=10, committed_are_extra=True, **options)
    assert (joined["agents"].values.tolist(), joined["n_agents"].values.tolist()) == ([[10, 3]], [10])
    assert joined["word_share"].values[0, 0, 0, 0] == pytest.approx((10 * q_of(POLICIES[0])[4, 0] + 3) / 13)


@pytest.mark.parametrize(
    "play",
    [
        lambda population, n: simulate(population, n_agents=n, runs=1, seed=0, max_rounds=1),
        lambda population, n: validation.rare_event(population, "a", n_agents=n, runs=2, seed=0, max_rounds=5),
        lambda population, n: validation.naming_game.exact_population(population, n, max_configurations=10**6),
    ],
    ids=["simulate", "rare_event", "exact_population"],
)
def test_shares_that_whole_numbers_of_agents_change_are_told(play, unchecked_types: None) -> None:
    """10 % of 4 agents are none, and of 14 one, 7 %; a mixture of 60:40 is 4 and 3 of 7 agents."""
    bound, mixed = (
        Population(POLICIES[0], committed={"b": 0.1}),
        Population([random_policy(0, 2, 1), random_policy(1, 2, 1)], fractions=[0.6, 0.4]),
    )
    with pytest.raises(InputError, match=r"n_agents = \[4\]: too few .* 0 committed to b for 0\.4.*at least 10$"):
        play(bound, 4)
    with pytest.warns(UserWarning, match=r"N = 14: .*1 committed to b for 1\.4"):
        play(bound, 14)
    with pytest.warns(UserWarning, match=r"N = 7: 4 random 0 for 4\.2, 3 random 1 for 2\.8"):
        play(mixed, 7)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        play(mixed, 5)
        simulate(bound, n_agents=[20, 10_001], runs=1, seed=0, max_rounds=1)


def test_large_populations_follow_the_rate_equation() -> None:
    """20 runs of 20,000 agents: within 4 standard errors of their mean at each round; a time half as fast is not."""
    population = Population(POLICIES, fractions=[0.4, 0.6], committed={"b": 0.2})
    start = np.random.default_rng(2).dirichlet(np.ones(5), size=2)
    runs = simulate(population, n_agents=20_000, runs=20, seed=1, initial=start, record_rounds=8, max_rounds=8)
    shares = runs["word_share"].isel(n_agents=0, word=0)
    rounds = np.arange(9.0)
    theory = meanfield.solve(population, initial=start, times=2 * rounds)["word_share"].values[:, 0]
    spread = shares.std("run").max().item() / np.sqrt(20) + 1e-4
    assert np.abs(shares.mean("run") - theory).max() < 4 * spread
    slower = meanfield.solve(population, initial=start, times=rounds)["word_share"].values[:, 0]
    assert np.abs(shares.mean("run") - slower).max() > 4 * spread, "one unit of time is half a round"


def test_starts_from_consensus_and_from_a_composition() -> None:
    policy = POLICIES[0]
    shares = simulate(policy, n_agents=8, runs=1, seed=0, initial="a", record_rounds=0, max_rounds=1)["word_share"]
    assert shares.values[0, 0, 0, 0] == pytest.approx(q_of(policy)[1, 0])
    half = 0.5 * meanfield.consensus(policy, "a") + 0.5 * meanfield.consensus(policy, "b")
    shares = simulate(policy, n_agents=8, runs=1, seed=0, initial=half, record_rounds=0, max_rounds=1)["word_share"]
    assert shares.values[0, 0, 0, 0] == pytest.approx((q_of(policy)[1, 0] + q_of(policy)[4, 0]) / 2)


def test_a_convention_has_numbers_in_range() -> None:
    for wrong in ({"success_rate": 0.0}, {"success_rate": 0.9, "first_test": 2}):
        with pytest.raises(InputError, match=r"(success_rate|first_test) = "):
            Convention(**wrong)
