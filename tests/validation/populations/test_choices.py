"""Choices with their memories, as a person would collect them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import meanfield
from meanfield import InputError, MemorySpace
from meanfield.datasets import RealPopulations, from_events
from validation.populations._choices import choices_of, ordered_subjects
from validation.populations._empirical_policy import choice_table
from validation.populations._schedule import Schedule


def made_up(initial: str = "", n_words: int = 3, n_agents: int = 5, runs: int = 4):
    """Runs of random words; agent 0 is committed in those that start from a consensus."""
    random = np.random.default_rng(5)
    rows = []
    for run in range(runs):
        for step in range(40):
            agent, partner = random.choice(n_agents, 2, replace=False)
            said, heard = ("ABC"[0 if k == 0 and initial else random.integers(n_words)] for k in (agent, partner))
            rows.append((run, step, agent, partner, said, heard))
    table = pd.DataFrame(rows, columns=["run", "step", "agent", "partner", "said", "heard"])
    committed = {0: "A"} if initial else None
    return from_events(table, memory_length=2, words=list("ABC"), initial=initial, committed=committed)


@pytest.mark.parametrize("initial", ["", "B"])
@pytest.mark.parametrize("length", [1, 2, 4])
def test_memories_are_those_of_a_person_who_writes_them_down(initial, length):
    real = made_up(initial)
    ((_, runs, events),) = ordered_subjects(real)
    choices = choices_of(runs, events, length)
    written = {}
    for run, rows in events.groupby("run"):
        memory = {agent: [("B", "B")] * (2 if initial else 0) for agent in range(5)}
        for row in rows.itertuples():
            for agent, own, other in ((row.agent, row.said, row.heard), (row.partner, row.heard, row.said)):
                written[run, row.step, agent] = memory[agent][-length:], own
                memory[agent] = [*memory[agent], (own, other)]
    if initial:
        written = {key: value for key, value in written.items() if key[2] != 0}
    assert len(written) == len(choices.chosen)
    for run, step, agent, memory, chosen in zip(*choices[:5], strict=True):
        expected, word = written[run, step, agent]
        held = [tuple(choices.words[k] for k in pair) for pair in memory.tolist() if pair[0] >= 0]
        assert (held, choices.words[chosen]) == (expected, word)


def test_states_are_those_of_the_memory_space():
    ((_, runs, events),) = ordered_subjects(made_up())
    choices = choices_of(runs, events)
    space = MemorySpace(3, 2)
    told = [space.state([tuple(pair) for pair in memory if pair[0] >= 0]) for memory in choices.memory.tolist()]
    assert choices.states(2).tolist() == told
    real = made_up()
    assert (choices.counts(2) == choice_table(real.choice_counts, list("ABC"), space)).all()


@pytest.mark.slow
def test_published_choices_are_counted_as_upstream_counted_them(data_folder):
    real = meanfield.datasets.ai_norms(data_folder / "ai_norms" / "llama31_data.zip")
    for subject, runs, events in ordered_subjects(real):
        if len(subject[1].split("_")) == 2:
            counted = real.choice_counts
            mine = (counted[["model", "options", "memory_length"]] == list(subject)).all(axis=1)
            space = MemorySpace(2, subject[2])
            choices = choices_of(runs, events)
            assert (choices.counts(subject[2]) == choice_table(counted[mine], list(choices.words), space)).all()


def test_tables_without_order_are_refused():
    real = made_up()
    with pytest.raises(
        InputError, match=r"populations has no events: expected runs in order, as in meanfield\.datasets"
    ):
        ordered_subjects(real._replace(events=None))


def in_rounds(random: np.random.Generator) -> RealPopulations:
    """Agents who meet one to three others in a round, in which all answers are given at once."""
    rows = []
    for run in range(4):
        for step in range(30):
            rows += [(run, step, *random.permutation(5)[:2].tolist(), *random.choice(["A", "B"], 2)) for _ in range(3)]
    table = pd.DataFrame(rows, columns=["run", "step", "agent", "partner", "said", "heard"])
    return from_events(table, memory_length=2, initial={1: "A"}, same_step="simultaneous")


def test_nobody_remembers_a_round_before_its_end():
    """Three programs agree: the counts of the log, the choices, and the schedule, beside memories written by hand."""
    real = in_rounds(np.random.default_rng(0))
    ((_, runs, events),) = ordered_subjects(real)
    choices, schedule = choices_of(runs, events), Schedule.read(runs, events)
    counted = pd.Series(dict(zip(*np.unique(schedule.states(), return_counts=True), strict=True)))
    assert (np.bincount(choices.states(2), minlength=schedule.space.n_states)[counted.index] == counted).all()
    expected: dict[tuple[str, str], int] = {}
    for run, part in events.groupby("run"):
        memory = {agent: ["A,A", "A,A"] if run == 1 else [] for agent in range(5)}
        for _, meetings in part.groupby("round"):
            before = {agent: "|".join(held[-2:]) for agent, held in memory.items()}
            for one in meetings.itertuples():
                for agent, own, other in ((one.agent, one.said, one.heard), (one.partner, one.heard, one.said)):
                    expected[before[agent], own] = expected.get((before[agent], own), 0) + 1
                    memory[agent].append(f"{own},{other}")
    assert real.choice_counts.set_index(["state", "choice"])["count"].to_dict() == expected
    table = np.zeros((schedule.space.n_states, 2))
    for (state, word), times in expected.items():
        memory_of = [tuple("AB".index(one) for one in pair.split(",")) for pair in state.split("|")] if state else []
        table[schedule.space.state(memory_of), "AB".index(word)] = times
    np.testing.assert_array_equal(choices.counts(2), table)
    longer = choices_of(runs, events, 4)
    for lag in (3, 4):
        slots = schedule.earlier[lag - 3]
        own = np.where(slots >= 0, schedule.said.ravel()[slots], -1)
        key = {
            (r, s, a): w
            for r, s, a, w in zip(longer.run, longer.step, longer.agent, longer.memory[:, 4 - lag, 0], strict=True)
        }
        agents = events[["agent", "partner"]].to_numpy().ravel()
        place = zip(np.repeat(events["run"], 2), np.repeat(events["step"], 2), agents, own, strict=True)
        assert all(w == key[r, s, a] for r, s, a, w in place if w >= 0)
