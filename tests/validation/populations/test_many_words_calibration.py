"""Policies of many words are as uncertain as they say: ranks of true policies, and p-values of blind tests."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

from _real_populations import EVENTS, as_events
from meanfield import MemorySpace
from meanfield.datasets import RealPopulations, from_events
from validation.populations import cross_validate, success_curves
from validation.populations._back_off import BackOffPolicy
from validation.populations._experiment import Experiment

DATA_SETS = 200
WORDS = tuple("ABCD")
LENGTH, N, RUNS = 2, 8, 24
SPACE = MemorySpace(len(WORDS), LENGTH)
MEMORIES = [SPACE.memory(state) for state in range(SPACE.n_states)]
STATES = {memory: state for state, memory in enumerate(MEMORIES)}


def true_table(random: np.random.Generator, least_shape: float) -> np.ndarray:
    """A policy of a random kind: by counts, last words and names, and every memory a little on its own.

    A row departs from this kind by gamma-distributed factors of a random concentration. Where their shapes are tiny,
    words of small probability have next to none.
    """
    frequent, heard, own, unseen = random.normal([0.8, 1.0, 0.3, -1.0], 0.5)
    names = random.normal(0, 0.4, len(WORDS))
    logs = np.tile(names, (SPACE.n_states, 1))
    for state, memory in enumerate(MEMORIES):
        times = np.bincount([word for pair in memory for word in pair], minlength=len(WORDS))
        logs[state] += frequent * times + unseen * (times == 0)
        if memory:
            logs[state, memory[-1][0]] += own
            logs[state, memory[-1][1]] += heard
    centre = np.exp(logs - logs.max(1, keepdims=True))
    centre /= centre.sum(1, keepdims=True)
    concentration = np.exp(random.uniform(np.log(10), np.log(300)))
    shape = np.maximum(concentration * centre, least_shape)
    q = centre * random.standard_gamma(shape) / shape + 1e-12
    return q / q.sum(1, keepdims=True)


def events_of(q: np.ndarray, random: np.random.Generator, runs: int) -> pd.DataFrame:
    def policy(memory: np.ndarray, n_words: int) -> np.ndarray:
        return q[[STATES[tuple((a, b) for a, b in one if a >= 0)] for one in memory.tolist()]]

    rows = [row for run in range(runs) for row in as_events(run, random, policy, N, WORDS, LENGTH, 400)]
    return pd.DataFrame(rows, columns=EVENTS)


def populations(events: pd.DataFrame) -> RealPopulations:
    return from_events(events, memory_length=LENGTH, words=WORDS, n_agents=N)


@pytest.mark.slow
def test_true_policies_rank_anywhere_among_the_draws():
    """Error budget: a uniform rank fails with a probability of 0.0001 for each of three questions."""
    ranks = {"first choice": [], "memory of a new run": [], "memory of the rarest tenth": []}
    too_sure = []
    for seed in range(DATA_SETS):
        random = np.random.default_rng((1, seed))
        q = true_table(random, least_shape=0.5)  # as the estimate assumes
        (known,), (new,) = (Experiment.all_of(populations(events_of(q, random, runs))) for runs in (RUNS, 1))
        choices, met = known.choices, new.choices.states()
        often = np.bincount(choices.states(), minlength=SPACE.n_states)
        rarest = np.argsort(often, kind="stable")[: SPACE.n_states // 10]
        asked = [0, int(random.choice(met)), int(random.choice(rarest))]
        word = random.integers(len(WORDS), size=3)
        policy = BackOffPolicy(choices)
        drawn = np.stack([one.function([MEMORIES[s] for s in asked]) for one in policy.sample(99, seed)])
        drawn, true = drawn[:, np.arange(3), word], q[asked, word]
        rank = (drawn < true).sum(0)
        for name, one in zip(ranks, rank, strict=True):
            ranks[name].append((one + random.random()) / 100)
        # Control: the same draws at a third of their width
        narrow = drawn.mean(0) + (drawn - drawn.mean(0)) / 3
        too_sure.append(((narrow < true).sum(0)[1] + random.random()) / 100)
    for values in ranks.values():
        assert kstest(values, "uniform").pvalue > 1e-4
    assert kstest(too_sure, "uniform").pvalue < 1e-4


def other_policy_noticed(events: pd.DataFrame, random: np.random.Generator, seed: int) -> float:
    """The p-value of the curve of runs that another policy played, foretold from those of the first."""
    (one,) = Experiment.all_of(populations(events))
    _, tested = next(iter(one.folds("run", 2, seed)))
    others = one.runs["run"][tested]
    played = events_of(true_table(random, least_shape=1e-9), random, RUNS)
    mixed = pd.concat([events[~events["run"].isin(others)], played[played["run"].isin(others)]])
    curve = success_curves(populations(mixed), rounds=8, draws=20, runs=40, seed=seed)
    return curve.loc[curve["fold"] == "1 of 2", "p_value"].iloc[0]


@pytest.mark.slow
def test_blind_tests_of_many_words_reject_as_rarely_as_they_say(monkeypatch):
    """Error budget: a uniform p-value fails with a probability of 0.0001 for each of the quantities."""
    monkeypatch.setattr("validation.populations._empirical_policy.MOST_STATES", SPACE.n_states - 1)
    p_values: dict[str, list[float]] = {"curve": [], "majority word": [], "time": []}
    control = []
    for seed in range(DATA_SETS):
        random = np.random.default_rng((2, seed))
        q = true_table(random, least_shape=1e-9)
        events = events_of(q, random, RUNS)
        real = populations(events)
        curve = success_curves(real, rounds=8, draws=20, runs=40, seed=seed)
        fold = f"{1 + seed % 2} of 2"  # one of both, since they test each other
        p_values["curve"].append(curve.loc[curve["fold"] == fold, "p_value"].iloc[0])
        table = cross_validate(real, draws=20, runs=40, seed=seed)
        table = table[table["fold"] == fold].set_index("quantity")
        for name in ("majority word", "time"):
            p_values[name].append(table.loc[name, "p_value"] if name in table.index else np.nan)
        if seed < DATA_SETS // 4:
            control.append(other_policy_noticed(events, random, seed))
    for values in p_values.values():
        known = np.array(values)[np.isfinite(values)]
        assert len(known) > 0.9 * DATA_SETS
        assert kstest(known, "uniform", alternative="greater").pvalue > 1e-4  # small values are not too many
    assert kstest(p_values["curve"], "uniform").pvalue > 1e-4
    assert kstest(control, "uniform", alternative="greater").pvalue < 1e-4
