"""Calls that would take too much memory are refused in one line, before anything is spent; others are not."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from tqdm import tqdm

import meanfield
import validation
from _policies import random_policy
from meanfield import InputError
from meanfield._dynamics import basins as _basins
from meanfield.toolbox import as_population
from validation import simulate
from validation.naming_game import LazyPolicy

POLICY = random_policy(0)
GAME = {"n_agents": 24, "runs": 10, "seed": 1}


@pytest.fixture
def budget(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the budget, in bytes."""
    return lambda size: monkeypatch.setenv("MEANFIELD_MEMORY", str(size / 2**30))


def peak(function: Callable[[], object]) -> int:
    """The most memory that Python and NumPy held at a time, in bytes."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refused(function: Callable[[], object], message: str) -> None:
    def attempt() -> None:
        with pytest.raises(InputError, match=message) as error:
            function()
        assert "\n" not in str(error.value)
        assert "GiB of memory, expected at most" in str(error.value)

    attempt()  # imports
    assert peak(attempt) < 2**24


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"runs": 10**9},
            r"runs = 1000000000, n_agents = \[24\]: would take 37.3 GiB .*; take fewer runs or agents, or",
        ),
        ({"n_agents": 2**32 - 2}, r"runs = 10, n_agents = \[4294967294\]: would take"),
        ({"n_agents": list(range(2, 100)), "runs": 10**7}, r"n_agents = \[2, 3, 4, … \(98 sizes\)\]"),
        (
            {"max_rounds": 10**9, "trajectories": True},
            "2000000002 numbers recorded a run: .*fewer rounds to record",
        ),
        ({"max_rounds": 10**9, "record_rounds": 10**9, "record": ["success_rate"]}, "1000000001 numbers recorded"),
        ({"committed": {"a": 2**31}, "committed_are_extra": True, "n_agents": 2**30}, r"n_agents = \[3221225472\]"),
    ],
)
def test_simulations_are_refused(options: dict, message: str) -> None:
    refused(lambda: simulate(POLICY, **{**GAME, **options}), message)


def test_simulations_of_lazy_policies_are_refused() -> None:
    policy = LazyPolicy(lambda memories: np.full((len(memories), 2), 0.5), ["a", "b"], 5)
    refused(lambda: simulate(policy, **GAME | {"runs": 10**9}), "runs = 1000000000")


@pytest.mark.slow
def test_analyses_are_refused_before_they_begin(tmp_path) -> None:
    many = {"n_agents": [24, 100], "runs": 10**9}
    refused(lambda: validation.collective_bias(POLICY, seed=1, **many), "runs = 1000000000, n_agents")
    refused(lambda: validation.sweep(POLICY, tmp_path / "store", **many), "runs = 1000000000, n_agents")
    seeds = {"seeds": range(10**5), "runs": 10**4, "n_agents": 24}
    refused(lambda: validation.sweep(POLICY, tmp_path / "store", **seeds), "of each of 100000 combinations: would")
    assert not (tmp_path / "store").exists()
    protocol = [(("a", "b"), ("a", "a"))]
    runs = {"runs": 10**9, "seed": 1, "max_rounds": 5}
    refused(lambda: validation.reactions.simulate(protocol, {"a": 5, "b": 5}, **runs), "runs = 1000000000, 2 states")
    refused(lambda: validation.minimal_naming_game.simulate(9, **runs, record_rounds=5), "2 states, 6 rounds recorded")


def test_theory_is_refused(budget: Callable[[float], None]) -> None:
    sizes, times = np.arange(2, 5000), np.linspace(0, 200, 20_000)
    budget(10**5)
    refused(lambda: meanfield.group_size_law(POLICY, n_agents=sizes), "n_agents has 4998 sizes: would take")
    refused(lambda: meanfield.finite_size(POLICY, times=times), "n_agents has 0 sizes and times 20000: would take")
    refused(lambda: meanfield.finite_size(POLICY, n_agents=sizes[:1000]), "1000 sizes and times 121: would take")
    refused(lambda: meanfield.solve(POLICY, times=times), "policies = 1, starts = 1, times = 20000: would take")
    starts = xr.DataArray(np.full((1000, 5), 0.2), dims=("start", "state"))
    refused(lambda: meanfield.solve(POLICY, initial=starts), "policies = 1, starts = 1000, times = 401: would take")


@pytest.mark.slow
@pytest.mark.parametrize(
    "calculate",
    [
        lambda: simulate(POLICY, n_agents=2, runs=10**5, seed=1, max_rounds=4),
        lambda: simulate(POLICY, n_agents=[2, 3], runs=2000, seed=1, max_rounds=99, trajectories=True),
        lambda: simulate(POLICY, n_agents=5, runs=3000, seed=1, max_rounds=99, record_rounds=99, record=["said"]),
        lambda: simulate(POLICY, n_agents=10**6, runs=1, seed=1, max_rounds=1),
        lambda: simulate(POLICY, n_agents=10**6, runs=1, seed=1, max_rounds=1, record_rounds=1),
        lambda: meanfield.finite_size(POLICY, n_agents=np.arange(2, 2002)),
    ],
)
def test_estimates_are_those_of_what_is_taken(calculate: Callable[[], object], budget: Callable[[float], None]) -> None:
    """A call is not refused if it may take what it needs, and is if it may take a quarter."""
    calculate()  # so that nothing is compiled while it is measured
    taken = peak(calculate)
    budget(taken)
    calculate()
    budget(taken / 4)
    with pytest.raises(InputError, match="would take"):
        calculate()


def test_draws_of_basins_are_not_kept(monkeypatch: pytest.MonkeyPatch, unchecked_types: None) -> None:
    """A hundred thousand starts more take less than a byte each; where they end is not kept either, and is made up."""
    game, bar = as_population(POLICY), tqdm(disable=True)
    monkeypatch.setattr(_basins, "_reached", lambda some, starts, *_: [(starts[0][:, 0, 0] > 0.5).astype(int)])
    attractors = SimpleNamespace(mixture=game.mixture, composition=[None, None])
    found = {}

    def draw(starts: int) -> None:
        drawn = {"starts": starts, "concentration": 1.0, "seed": 0}
        (found[starts],) = _basins._by_draws([attractors], drawn, 1.0, bar)

    few, many = peak(lambda: draw(64)), peak(lambda: draw(2**17))
    assert many - few < 2**17
    # Of five states, the first holds more than half with probability 1/2⁴
    fraction, error, _ = found[2**17]
    assert fraction.sum() == 1 and abs(fraction[1] - 1 / 16) < 4 * error[1] < 0.003


@pytest.mark.parametrize("text", ["much", "-1", "0", "nan"])
def test_the_budget_is_a_number(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEANFIELD_MEMORY", text)
    with pytest.raises(InputError, match=f"MEANFIELD_MEMORY = {text}: expected a positive number of GiB"):
        simulate(POLICY, **GAME)
