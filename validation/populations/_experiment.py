"""The contents of a log for one model, options and memory length: its runs, their conditions, meetings and choices."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from meanfield import InputError, MemorySpace
from meanfield.datasets import RealPopulations
from meanfield.toolbox import LARGEST_SEED, compiled, instance, one_of, past_slots, whole_number
from validation.populations._choices import NOTHING, Choices
from validation.populations._conditions import (
    CONDITION,
    EXPERIMENTS,
    SUBJECT,
    Condition,
    conditions,
    read_runs,
    with_lengths,
)
from validation.populations._empirical_policy import why_not_tabulable

ALIKE = ["experiment", "n_agents", "initial_consensus", "committed_word"]
UNSAID = -1


class Experiment:
    """The runs of one model, options and memory length, and what was said in them, by run, then in order.

    A slot is one player of one interaction; choices are the slots of agents who are not committed.

    Attributes
    ----------
    runs
        The checked table, a row a run.
    where, why_not
        The first columns of rows of results; why no table can hold the memory states, '' if one can.
    run, step, named, round
        (interaction,): row of `runs`; place in the run, from 0; step in the table of events; number of the round among
        all runs' rounds. Nobody remembers a round before its end.
    players, said
        (interaction, 2), agents of all runs numbered through, and numbers of words.
    initial, committed
        (agent,): the word that fills the memory at the start, or NOTHING; whether the agent keeps to a word.
    free, run_of, agent_of, step_of
        (choice,): slots, rows of `runs`, agents, and places in the run.
    """

    def __init__(self, subject: tuple[str, str, int], runs: pd.DataFrame, events: pd.DataFrame | None = None) -> None:
        """`events`, if runs are in order, have their rows of `runs` as `place`."""
        self.subject, self.runs = subject, runs
        self.model, options, self.memory_length = subject
        self.words = tuple(options.split("_"))
        self.where = {"model": self.model, "pair": "/".join(self.words), "memory_length": self.memory_length}
        self.space = MemorySpace(len(self.words), self.memory_length)
        self.why_not = why_not_tabulable(len(self.words), self.memory_length)
        self._name = zlib.crc32("\0".join(map(str, subject)).encode())
        if events is None:
            return
        run = self.run = events["place"].to_numpy().astype(np.int64)
        self.step = np.arange(len(run)) - np.searchsorted(run, run)
        self.named = events["step"].to_numpy().astype(np.int64)
        told = events["round"].fillna(events["step"]) if "round" in events else events["step"]
        self.round = np.cumsum((np.diff(run, prepend=-1) != 0) | (np.diff(told, prepend=-1) != 0))
        # Agents have numbers of their own in each run.
        names, players = np.unique(events[["agent", "partner"]].to_numpy().ravel(), return_inverse=True)
        agents, players = np.unique(np.repeat(run, 2) * len(names) + players, return_inverse=True)
        self.players = players.reshape(-1, 2)
        home, name = np.divmod(agents, len(names))
        number = {"": NOTHING} | {word: k for k, word in enumerate(self.words)}
        said = [events[side].astype(str).map(number) for side in ("said", "heard")]
        self.said = np.stack(said, axis=1).astype(np.int64)
        self.initial = self.runs["initial_consensus"].map(number).to_numpy()[home]
        listed = [set(map(int, one.split())) for one in self.runs["committed_agents"]]
        self.committed = np.array([one in listed[at] for at, one in zip(home, names[name], strict=True)])
        self.free = np.flatnonzero(~self.committed[players])
        self.agent_of = players[self.free]
        self.run_of, self.step_of = (one[self.free // 2] for one in (run, self.step))

    @classmethod
    def all_of(cls, populations: RealPopulations, tabulable: bool = False) -> list[Experiment]:
        """Experiments of a log, all or those whose memory states a table can hold; InputError where there is none."""
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
        found = []
        for subject, part in table.groupby(SUBJECT, sort=True):
            mine = events.assign(place=events["run"].map(pd.Series(range(len(part)), part["run"])))
            mine = mine[mine["place"].notna()].sort_values(["place", "step"], kind="stable")
            found.append(cls(subject, part, mine))  # type: ignore[arg-type]
        if not tabulable:
            return found
        if kept := [one for one in found if not one.why_not]:
            return kept
        raise InputError(f"populations: {found[-1].why_not}")

    def seed(self, seed: int) -> int:
        """One of its own, whatever else is in the log."""
        return (seed + self._name) % (LARGEST_SEED + 1)

    def folds(self, by: str, folds: int, seed: int) -> Iterator[tuple[str, np.ndarray]]:
        """Name of each fold, and whether each run is in it.

        By 'run', runs under each condition are dealt to folds at random; by 'experiment', each is a fold.
        """
        if by == "experiment":
            runs, added = self.runs, ((" ", "initial_consensus"), (" to ", "committed_word"))
            start, to = ((before + runs[name]).where(runs[name] != "", "") for before, name in added)
            label = runs["experiment"].str.replace("_", " ") + start + to + ", N = " + runs["n_agents"].astype(str)
        else:
            random = np.random.default_rng((seed, self._name))
            label = np.empty(len(self.runs), dtype=object)
            dealt = 0
            for _, rows in sorted(self.runs.groupby(CONDITION).indices.items()):
                label[random.permutation(rows)] = [f"{(dealt + k) % folds + 1} of {folds}" for k in range(len(rows))]
                dealt += len(rows)
        for one in sorted(set(label)):
            yield one, np.asarray(label == one)

    def conditions(
        self, window: int | None, tested: np.ndarray | None = None
    ) -> Iterator[tuple[dict[str, object], list[Condition], int]]:
        """First columns of results: conditions of equal experiments, sizes and starts, and runs without one.

        The latter have agents who are committed from mid-run on. Runs that are not `tested` (run,) only tell when the
        others stop.
        """
        of_interest = self.runs.index if tested is None else self.runs.index[tested]
        for experiment in EXPERIMENTS:
            runs = with_lengths(self.runs[self.runs["experiment"] == experiment], window)
            late = runs["committed_from"].fillna(0) > 0 if "committed_from" in runs else pd.Series(False, runs.index)
            for _, part in runs.groupby(["n_agents", "initial_consensus"], sort=True):
                start = part[["experiment", "n_agents", "initial_consensus"]].to_dict("records")[0]
                early = part[~late[part.index]]
                found = conditions(early, window, of_interest) if len(early) else []
                yield self.where | start, found, int(late[part.index.intersection(of_interest)].sum())

    def alike(self, names: list[str] = ALIKE) -> np.ndarray:
        """(run,), numbers of groups of runs that began alike; by default whatever the number of committed agents."""
        return self.runs.groupby(names, sort=True).ngroup().to_numpy()

    def past(self, lags: Iterable[int]) -> np.ndarray:
        """(lag, choice), the slots of the agent's interactions so many ago; UNSAID where the run was younger."""
        ago = past_slots(self.players, self.round)
        return np.stack([ago(lag)[self.free] for lag in lags])

    @cached_property
    def choices(self) -> Choices:
        """The choices that were made."""
        slots, said = self.past(range(self.memory_length, 0, -1)).T, self.said.ravel()
        first = self.initial[self.agent_of, None]
        memory = [np.where(slots == UNSAID, first, said[side]) for side in (slots, slots ^ 1)]
        times = np.ones(len(self.free))
        return Choices(np.stack(memory, axis=2).astype(np.int16), said[self.free], times, self.agent_of, self.words)

    def imitate(
        self, log_q: np.ndarray, sharpness: np.ndarray, bias: np.ndarray, unit: np.ndarray, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """States (choice,) and words (slot,) if the same agents meet, with policies ∝ q^sharpness e^bias.

        `sharpness` (unit,) and `bias` (unit, word) belong to the `unit` (interaction,). Committed agents say what they
        said.
        """
        said, states = self.said.copy(), np.empty(self.said.shape, dtype=np.int64)
        said.ravel()[self.free] = UNSAID
        filled = np.array([0, *map(self.space.consensus_state, range(len(self.words)))])
        memory, random = filled[self.initial + 1], np.random.default_rng(seed).random(said.shape)
        policy = (np.ascontiguousarray(one, dtype=float) for one in (log_q, sharpness, bias))
        _meet(self.players, self.round, unit, memory, self.space.successors(), *policy, random, states, said)
        return states.ravel()[self.free], said.ravel()


def each(experiments: list[Experiment], name: str, progress: bool) -> Iterable[Experiment]:
    """One after another, with a progress bar of this name."""
    return tqdm(experiments, desc=name, unit="policy", disable=not progress, leave=False)


def as_table(rows: list[dict], kind: str, **options: object) -> pd.DataFrame:
    """A result of this kind, which tells the options that it was made with."""
    result = pd.DataFrame(rows)
    result.attrs = {"kind": kind, **options}
    return result


def check_folds(by: str, folds: int) -> int:
    """The number of folds; InputError unless both can be used."""
    one_of("by", by, ("run", "experiment"))
    return whole_number("folds", folds, 2)


@compiled
def _meet(players, rounds, unit, memory, successors, log_q, sharpness, bias, random, states, said):
    """All meetings in order; draws words where they are not given, and writes states and words."""
    n_words = log_q.shape[1]
    weight = np.empty(n_words)
    done = 0  # interactions that are remembered
    for i in range(len(players)):
        for side in range(2):
            state = memory[players[i, side]]
            states[i, side] = state
            if said[i, side] >= 0:
                continue
            most = -np.inf
            for word in range(n_words):
                weight[word] = sharpness[unit[i]] * log_q[state, word] + bias[unit[i], word]
                most = max(most, weight[word])
            total = 0.0
            for word in range(n_words):
                weight[word] = np.exp(weight[word] - most)
                total += weight[word]
            left = random[i, side] * total
            chosen = 0
            while chosen < n_words - 1 and left >= weight[chosen]:
                left -= weight[chosen]
                chosen += 1
            said[i, side] = chosen
        if i + 1 < len(players) and rounds[i + 1] == rounds[i]:
            continue
        for past in range(done, i + 1):
            for side in range(2):
                agent = players[past, side]
                memory[agent] = successors[memory[agent]] + n_words * said[past, side] + said[past, 1 - side]
        done = i + 1
