"""Policies that are asked as memories occur: the same runs as from a table, and no question too many.

Nothing here is left to chance: all simulations are seeded, and compared with others or with what must hold for each.
"""

from __future__ import annotations

import string
from pathlib import Path

import numba
import numpy as np
import pytest
import xarray as xr

import meanfield
import validation
from _policies import random_policy
from meanfield import InputError
from meanfield.toolbox import space_of
from validation.naming_game import LazyPolicy

TEN_WORDS = list(string.ascii_lowercase[:10])


class Table:
    """A function that reads from a table, and remembers what it was asked, call by call."""

    def __init__(self, policy: xr.Dataset) -> None:
        self.q = policy["q"].values
        self.space = space_of(policy)
        self.calls = []

    def __call__(self, memories):
        self.calls.append(memories)
        return self.q[[self.space.state(memory) for memory in memories]]


def lazy(policy: xr.Dataset) -> LazyPolicy:
    function = Table(policy)
    return LazyPolicy(function, meanfield.toolbox.words_of(policy), function.space.memory_length, name="random")


def conforming(p, n_words=10):
    """Say the word heard most often with probability p, and any where none was heard more often than others."""

    def function(memories):
        q = np.full((len(memories), n_words), 1 / n_words)
        for k, memory in enumerate(memories):
            heard = np.bincount([partner for _, partner in memory], minlength=n_words)
            if (heard == heard.max()).sum() == 1:
                q[k] = (1 - p) / (n_words - 1)
                q[k, heard.argmax()] = p
        return q

    return function


def assert_same_runs(one: xr.Dataset, other: xr.Dataset) -> None:
    xr.testing.assert_identical(one.drop_attrs(), other.drop_attrs())


# --- equal to a table ---


@pytest.mark.parametrize(("n_words", "memory_length"), [(2, 3), (3, 1)])
@pytest.mark.parametrize(
    "options",
    [
        {"trajectories": True, "max_rounds": 12, "record": ["word_share", "said", "success_rate"]},
        {"committed": {"b": 2, "a": 1}, "record_rounds": 4},
        {"committed": {"a": 2, "b": 0}, "committed_are_extra": True, "initial": "a", "convention": "001 strict"},
    ],
    ids=str,
)
def test_runs_are_those_of_the_table(n_words: int, memory_length: int, options: dict[str, object]) -> None:
    policy = random_policy(n_words, n_words, memory_length, concentration=0.05)
    arguments = {"n_agents": [24, 4, 7], "runs": 40, "seed": 8, "max_rounds": 40, **options}
    assert_same_runs(validation.simulate(lazy(policy), **arguments), validation.simulate(policy, **arguments))


def test_comparison_covers_consensus_and_ties() -> None:
    """Two agents and a low bar: words are often agreed on equally often, and what is said next decides."""
    policy = random_policy(5, 3, 2, concentration=0.5)
    arguments = {"n_agents": 2, "runs": 500, "seed": 1, "convention": validation.naming_game.Convention(0.3)}
    table = validation.simulate(policy, **arguments)
    assert set(np.unique(table["consensus_word"].values.astype(str))) == {"a", "b", "c"}
    assert_same_runs(validation.simulate(lazy(policy), **arguments), table)


def test_portions_and_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, threads, asked = random_policy(4, 3, 2), numba.get_num_threads(), []
    arguments = {"n_agents": [5, 24], "runs": 11, "seed": 2, "max_rounds": 30, "record_rounds": 20}
    expected = validation.simulate(policy, **arguments)
    monkeypatch.setattr("validation._engine.ensemble.STATE_BYTES", 1)
    monkeypatch.setattr("validation._engine.ensemble.INTERACTIONS_A_CALL", 100)
    try:
        for number in (1, threads):
            numba.set_num_threads(number)
            asked.append(lazy(policy))
            assert_same_runs(validation.simulate(asked[-1], **arguments), expected)
    finally:
        numba.set_num_threads(threads)
    assert asked[0].asked == asked[1].asked


# --- what is asked ---


def test_each_memory_is_asked_once() -> None:
    policy = random_policy(6, 3, 2)
    asked = lazy(policy)
    first = validation.simulate(asked, n_agents=[10, 11], runs=30, seed=1, max_rounds=50, trajectories=True)
    calls = asked.function.calls
    memories = [memory for call in calls for memory in call]
    assert calls[0] == [()]
    assert len(set(memories)) == len(memories)
    assert (first.attrs["function_calls"], first.attrs["memories_asked"]) == (len(calls), len(memories)) == asked.asked
    again = validation.simulate(asked, n_agents=[10, 11], runs=30, seed=1, max_rounds=50, trajectories=True)
    assert (again.attrs["function_calls"], again.attrs["memories_asked"]) == (0, 0)
    assert_same_runs(first, again)


def test_only_memories_that_occur_are_asked() -> None:
    """Who always says `a` remembers nothing else, and each memory goes back to one from which it can be reached."""
    silent = LazyPolicy(lambda memories: np.eye(10)[[0] * len(memories)], TEN_WORDS, 5)
    assert validation.simulate(silent, n_agents=4, runs=3, seed=0, committed={"b": 4}).attrs["function_calls"] == 0
    validation.simulate(silent, n_agents=24, runs=10, seed=1)
    assert silent.asked.memories == 6
    sparse = random_policy(7, 4, 4, concentration=0.02)
    sparse["q"][:] = np.where(sparse["q"] > 0.01, sparse["q"], 0)
    sparse["q"][:] = sparse["q"] / sparse["q"].sum("word")
    asked = lazy(sparse)
    validation.simulate(asked, n_agents=12, runs=5, seed=1, max_rounds=3)
    known: set = set()
    for call in asked.function.calls:
        for memory in call:
            if 0 < len(memory) < 4:
                assert memory[:-1] in known
                assert sparse["q"].values[asked.space.state(memory[:-1]), memory[-1][0]] > 0
        known |= set(call)
    assert 1 + 2 * 5 * 3 * 12 >= len(known) > 20


def test_ten_words_reach_consensus(tmp_path: Path) -> None:
    policy = LazyPolicy(conforming(0.999), TEN_WORDS, 5, name="conformist")
    result = validation.simulate(policy, n_agents=24, runs=20, seed=4, max_rounds=300)
    assert result["consensus_word"].notnull().mean() > 0.8
    assert len(np.unique(result["consensus_word"].dropna("run", how="any").values.astype(str))) > 3
    assert policy.asked.memories < 40_000
    kept = policy.answers
    assert kept.q.nbytes + kept.thresholds.nbytes + kept.table.nbytes < policy.asked.memories * (32 * 10 + 128)
    assert result["model"] == "conformist"
    assert result["pair"] == "a/b/c/d/e/f/g/h/i/j"
    xr.testing.assert_identical(result, meanfield.load(meanfield.save(result, tmp_path / "lazy.nc")))


def test_probabilities_of_given_memories() -> None:
    table = random_policy(8, 3, 2)
    policy = lazy(table)
    memories = [(), ((0, 1),), ((2, 2), (1, 0)), ()]
    for _ in range(2):
        expected = table["q"].values[[policy.space.state(memory) for memory in memories]]
        assert np.array_equal(policy.probabilities(memories), expected)
        assert policy.asked == (1, 3)


# --- what goes wrong ---


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda q: q * np.nan, r"returned nan for the word a after the memory \[\(., .\)"),
        (lambda q: q + np.array([0, 0.5, -0.5]), r"returned -0\.\d+ for the word c after the memory \[\(., .\)"),
        (lambda q: q * 0.5, r"sum to 0\.\d* for the memory \[\(., .\)"),
        (lambda q: q[1:], r"shape \(\d+, 3\) for the memory \[\(., .\)\] and \d+ more: expected \(\d+, 3\)"),
        (lambda q: "abc", r"returned str for the memory \[\(., .\)"),
    ],
)
def test_wrong_answers_are_refused(answer, message: str) -> None:
    def function(memories):
        q = np.full((len(memories), 3), 1 / 3)
        return q if memories == [()] else answer(q)

    policy = LazyPolicy(function, ["a", "b", "c"], 2)
    with pytest.raises(InputError, match=message):
        validation.simulate(policy, n_agents=10, runs=3, seed=0)
    assert policy.asked == (1, 1)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interrupt_leaves_what_was_known(error: type[BaseException]) -> None:
    table = random_policy(3, 3, 2)
    policy = lazy(table)
    good = policy.function

    def interrupted(memories):
        if len(good.calls) == 4:
            raise error
        return good(memories)

    arguments = {"n_agents": [6, 24], "runs": 10, "seed": 5, "max_rounds": 30, "record_rounds": 9}
    policy.function = interrupted
    with pytest.raises(error):
        validation.simulate(policy, **arguments)
    assert policy.asked.calls == 4
    policy.function = good
    assert_same_runs(validation.simulate(policy, **arguments), validation.simulate(table, **arguments))
    assert len({memory for call in good.calls for memory in call}) == policy.asked.memories == sum(map(len, good.calls))


def test_more_memories_than_the_cache_holds() -> None:
    policy = LazyPolicy(conforming(0.5), TEN_WORDS, 5, cache=100)
    with pytest.raises(InputError, match=r"cache = 100: \d+ memories are known and \d+ more occur"):
        validation.simulate(policy, n_agents=24, runs=5, seed=0)
    assert policy.asked.memories <= 100


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"function": 3}, "function is a int"),
        ({"words": ["a", "a"]}, "words = "),
        ({"memory_length": 10}, "memory_length = 10 with 10 words"),
        ({"initial": "z"}, "initial = 'z': expected one of a, b"),
        ({"initial": np.ones(3)}, "initial is a ndarray: expected None or a word"),
        ({"committed": {"a": 25}}, "committed = {'a': 25}: expected at most n_agents = 24"),
        ({"policy": conforming(0.9)}, r"policy is a function, .*expected LazyPolicy\(f, words, memory_length\)"),
        ({"record": ["interface_density"], "record_rounds": 1}, "beside a LazyPolicy: expected no 'interface_density'"),
        ({"topology": [(0, 1), (1, 2)]}, "topology beside a LazyPolicy"),
    ],
)
def test_wrong_input_is_named(wrong: dict[str, object], message: str, unchecked_types: None) -> None:
    made = {"function": conforming(0.9), "words": TEN_WORDS, "memory_length": 5}
    arguments = {"n_agents": 24, "runs": 1, "seed": 0} | {k: v for k, v in wrong.items() if k not in made}
    with pytest.raises(InputError, match=message):
        policy = arguments.pop("policy", None) or LazyPolicy(*(wrong.get(name, made[name]) for name in made))
        validation.simulate(policy, **arguments)
