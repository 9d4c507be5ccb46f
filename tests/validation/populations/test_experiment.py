"""Contents of a log: choices with their memories, as a person would collect them, and folds of runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from _real_populations import ordered_populations, real_log
from meanfield.datasets import RealPopulations
from validation.populations._choices import Choices
from validation.populations._experiment import Experiment

H = 2


def made_up(initial: str = "") -> RealPopulations:
    """Runs of random words; agent 0 is committed in those that start from a consensus."""
    random = np.random.default_rng(5)
    rows = []
    for run in range(4):
        for step in range(40):
            agent, partner = random.choice(5, 2, replace=False)
            said, heard = ("ABC"[0 if k == 0 and initial else random.integers(3)] for k in (agent, partner))
            rows.append((run, step, agent, partner, said, heard))
    committed = {0: "A"} if initial else None
    return real_log(rows, H, words=list("ABC"), initial=initial, committed=committed)


def in_rounds() -> RealPopulations:
    """Agents who meet one to three others in a round, in which all answers are given at once."""
    random, rows = np.random.default_rng(0), []
    for run in range(4):
        for step in range(30):
            rows += [(run, step, *random.permutation(5)[:2].tolist(), *random.choice(["A", "B"], 2)) for _ in range(3)]
    return real_log(rows, H, initial={1: "A"}, same_step="simultaneous")


@pytest.mark.parametrize("log", [made_up(), made_up("B"), in_rounds()], ids=["empty", "consensus", "rounds"])
def test_memories_are_those_of_a_person_who_writes_them_down(log):
    """Choices, states, forgotten interactions and the counts of the log, beside memories written by hand."""
    (one,) = Experiment.all_of(log)
    number = {word: k for k, word in enumerate(one.words)}
    start = log.runs.set_index("run")["initial_consensus"]
    expected = []  # run, step, held pairs, forgotten pairs, word
    for run, events in log.events.groupby("run"):
        held = {agent: [(number[start[run]],) * 2] * H if start[run] else [] for agent in range(5)}
        met: dict[int, list] = {agent: [] for agent in range(5)}
        for _, meetings in events.groupby("round" if "round" in events else "step"):
            before = {agent: (held[agent][-H:], met[agent][:-H][-H:]) for agent in range(5)}
            for row in meetings.itertuples():
                words = number[row.said], number[row.heard]
                for agent, pair in ((row.agent, words), (row.partner, words[::-1])):
                    if agent or not one.committed.any():
                        expected.append((run, row.step, *before[agent], pair[0]))
                    held[agent].append(pair)
                    met[agent].append(pair)
    runs, steps = log.runs["run"].to_numpy()[one.run_of], one.named[one.free // 2]
    past, said, space = one.past(range(2 * H, H, -1)), one.said.ravel(), one.space
    memory = [[tuple(pair) for pair in held if pair[0] >= 0] for held in one.choices.memory.tolist()]
    forgotten = [[(said[slot], said[slot ^ 1]) for slot in slots if slot >= 0] for slots in past.T]
    assert list(zip(runs, steps, memory, forgotten, one.choices.chosen, strict=True)) == expected
    assert one.choices.states().tolist() == [space.state(held) for held in memory]
    np.testing.assert_array_equal(one.choices.counts(), Choices.of_table(log.choice_counts).counts())


def test_imitations_keep_everything_but_the_words_of_free_agents():
    (one,) = Experiment.all_of(made_up("B"))
    q = np.random.default_rng(0).dirichlet([1, 1, 1], one.space.n_states)
    policy = np.log(q), np.ones(1), np.zeros((1, 3)), np.zeros(len(one.run), dtype=np.int64)
    states, said = one.imitate(*policy, 5)
    fixed = np.setdiff1d(np.arange(len(said)), one.free)
    np.testing.assert_array_equal(said[fixed], one.said.ravel()[fixed])
    np.testing.assert_array_equal(said, one.imitate(*policy, 5)[1])
    n = np.bincount(states, minlength=one.space.n_states)
    first = np.bincount(states, said[one.free] == 0, minlength=one.space.n_states)
    z = (first - n * q[:, 0]) / np.sqrt(np.maximum(n * q[:, 0] * (1 - q[:, 0]), 1e-9))
    assert (z[n > 0] ** 2).sum() < (n > 0).sum() + 4 * np.sqrt(2 * (n > 0).sum()), "words follow the policy"


def test_folds_hold_each_run_once_and_each_condition_evenly():
    real = ordered_populations()
    (one,), (other,) = (Experiment.all_of(real._replace(runs=real.runs.assign(model=name))) for name in ("m", "n"))
    for folds in (2, 3):
        found = dict(one.folds("run", folds, 1))
        assert np.sum(list(found.values()), axis=0).tolist() == [1] * len(one.runs)
        sizes = [one.runs[inside].groupby(["experiment", "n_committed"]).size() for inside in found.values()]
        assert np.ptp(pd.concat(sizes, axis=1).fillna(0), axis=1).max() <= 1
    again, others = dict(one.folds("run", 2, 1)), dict(other.folds("run", 2, 1))
    assert (again["1 of 2"] == dict(one.folds("run", 2, 1))["1 of 2"]).all()
    assert (again["1 of 2"] != others["1 of 2"]).any()
