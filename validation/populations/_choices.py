"""Each choice of each free agent of real runs, in order, with the memory it was made with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from meanfield import InputError, MemorySpace
from meanfield.datasets import RealPopulations
from meanfield.toolbox import instance
from validation.populations._conditions import SUBJECT, read_runs

EVENTS = ("run", "step", "agent", "partner", "said", "heard")
NOTHING = -1  # in a memory, where the agent had no interaction yet


class Choices(NamedTuple):
    """Choices of agents who are not committed, by run, then by agent, then in order; arrays over `choice`."""

    run: np.ndarray
    step: np.ndarray
    agent: np.ndarray
    memory: np.ndarray  # (choice, length, 2), own and partner's words, oldest first; NOTHING before the first ones
    chosen: np.ndarray
    words: tuple[str, ...]

    def states(self, memory_length: int) -> np.ndarray:
        """Numbers of the memory states, of the last `memory_length` interactions, in the MemorySpace of these words."""
        space = MemorySpace(len(self.words), memory_length)
        recent = self.memory[:, self.memory.shape[1] - memory_length :]
        held = (recent[:, :, 0] != NOTHING).sum(1)
        pairs = np.where(recent[:, :, 0] == NOTHING, 0, len(self.words) * recent[:, :, 0] + recent[:, :, 1])
        digits = np.zeros(len(recent), dtype=np.int64)
        for place in range(memory_length):
            digits = digits * len(self.words) ** 2 + pairs[:, place]
        return np.array([space.offset(h) for h in range(memory_length + 1)])[held] + digits

    def counts(self, memory_length: int) -> np.ndarray:
        """How often each word was chosen in each state, (state, word)."""
        table = np.zeros((MemorySpace(len(self.words), memory_length).n_states, len(self.words)))
        np.add.at(table, (self.states(memory_length), self.chosen), 1)
        return table

    def of(self, chosen: np.ndarray) -> Choices:
        """Those where a mask (choice,) is true."""
        return Choices(*(values[chosen] for values in self[:5]), self.words)


def ordered_subjects(populations: RealPopulations) -> list[tuple[tuple[str, str, int], pd.DataFrame, pd.DataFrame]]:
    """Model, options and memory length, their checked runs and their events; InputError where runs are not in order."""
    instance("populations", populations, RealPopulations)
    events, runs = populations.events, populations.runs
    if events is None or "run" not in runs:
        raise InputError(
            "populations has no events: expected runs in order, as in meanfield.datasets.ai_norms(ordered=True) or "
            "meanfield.datasets.from_events"
        )
    table = read_runs(runs)
    if table["run"].duplicated().any() or events.duplicated(["run", "step"]).any():
        raise InputError(
            "run: a number occurs twice in runs, or a step of it in events: expected other numbers in each part of "
            "populations that were put together, as in runs.assign(run=runs['run'] + 1000)"
        )
    if absent := sorted({*table["run"]} - {*events["run"]}):
        raise InputError(f"run = {absent[0]} has no events: expected some of each run")
    groups = {name: part for name, part in events.groupby("run", sort=False)}
    return [
        (subject, part, pd.concat([groups[run] for run in part["run"]]))  # type: ignore[misc]
        for subject, part in table.groupby(SUBJECT, sort=True)
    ]


def choices_of(runs: pd.DataFrame, events: pd.DataFrame, length: int | None = None) -> Choices:
    """The choices in `events` of `runs` of one model, options and memory length H (as from `ordered_subjects`).

    Memories hold the last `length` interactions (default H): more than H show what the agents were no longer told.
    """
    words = tuple(str(runs["options"].iloc[0]).split("_"))
    H = int(runs["memory_length"].iloc[0])
    length = H if length is None else length
    started = runs.set_index("run")
    said, heard = (_numbered(events[name], words) for name in ("said", "heard"))
    run, step = events["run"].to_numpy(), events["step"].to_numpy()
    # Each interaction is a choice of both players.
    both = {
        "run": np.tile(run, 2),
        "step": np.tile(step, 2),
        "agent": np.concatenate([events["agent"], events["partner"]]),
        "own": np.concatenate([said, heard]),
        "partner": np.concatenate([heard, said]),
        "round": np.tile(rounds_of(events), 2),
    }
    order = np.lexsort((both["step"], both["agent"], both["run"]))
    run, step, agent, own, partner, rounds = (values[order] for values in both.values())
    new = np.ones(len(run), dtype=bool)
    new[1:] = (run[1:] != run[:-1]) | (agent[1:] != agent[:-1])
    first = np.maximum.accumulate(np.where(new, np.arange(len(run)), 0))
    new[1:] |= rounds[1:] != rounds[:-1]
    now = np.maximum.accumulate(np.where(new, np.arange(len(run)), 0))
    before = now - first  # interactions of the agent before this round
    initials = zip(started.index.tolist(), started["initial_consensus"].tolist(), strict=True)
    beginning = {name: words.index(word) if word else NOTHING for name, word in initials}
    initial = pd.Series(run).map(beginning).to_numpy()
    memory = np.empty((len(run), length, 2), dtype=np.int16)
    for lag in range(1, length + 1):
        earlier = now - lag
        filled = np.where(lag - before <= H, initial, NOTHING)
        for side, values in enumerate((own, partner)):
            memory[:, length - lag, side] = np.where(lag <= before, values[np.maximum(earlier, 0)], filled)
    free = ~is_committed(run, agent, started)
    return Choices(run, step, agent, memory, own, words).of(free)


def rounds_of(events: pd.DataFrame) -> np.ndarray:
    """Equal numbers for interactions of a run whose answers were given before any of them was known."""
    rounds = events["round"].fillna(events["step"]) if "round" in events else events["step"]
    return rounds.to_numpy()


def _numbered(column: pd.Series, words: tuple[str, ...]) -> np.ndarray:
    return column.astype(str).map({word: k for k, word in enumerate(words)}).to_numpy().astype(np.int16)


def is_committed(run: np.ndarray, agent: np.ndarray, runs: pd.DataFrame) -> np.ndarray:
    """Whether agents (agent,) of runs (agent,) are committed; `runs` has the names of runs as its index."""
    committed = {(name, int(one)) for name, listed in runs["committed_agents"].items() for one in listed.split()}
    if not committed:
        return np.zeros(len(run), dtype=bool)
    return pd.MultiIndex.from_arrays([run, agent]).isin(pd.MultiIndex.from_tuples(sorted(committed)))
