"""Tables of the runs of real populations: their ends, the choices by memory, and every interaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from meanfield.datasets._ai_norms_archive import RealRun


def runs_table(runs: Sequence[RealRun]) -> pd.DataFrame:
    """A row for each run."""
    rows = []
    for number, run in enumerate(runs):
        last = run.said[-3 * len(run.agents) :]
        words, counts = np.unique(last, return_counts=True)
        success = run.said[:, 0] == run.said[:, 1]
        rows.append(
            {
                "model": run.model,
                "experiment": run.experiment,
                "options": " ".join(run.options),
                "memory_length": run.memory_length,
                "n_agents": len(run.agents),
                "n_committed": len(run.committed),
                "initial_consensus": run.initial,
                "committed_word": run.committed_word,
                "interactions": len(run.players),
                "success_last_3N": round(float((last[:, 0] == last[:, 1]).mean()), 4),
                "majority_word_last_3N": str(words[counts.argmax()]),
                "majority_share_last_3N": round(float(counts.max() / counts.sum()), 4),
                "run": number,
                "file": run.file,
                "committed_agents": " ".join(map(str, run.committed)),
                "committed_from": run.committed_from,
                "converged": run.converged,
                "agreed_at_end": int(np.append(~success[::-1], True).argmax()),
                "agreed_at_most": _longest_streak(success & (run.said[:, 0] != run.initial)),
            }
        )
    return pd.DataFrame(rows)


def _longest_streak(success: np.ndarray) -> int:
    failures = np.flatnonzero(~success)
    return int(np.diff(failures, prepend=-1, append=len(success)).max()) - 1


def events_table(runs: Sequence[RealRun]) -> pd.DataFrame:
    """A row for each interaction, in the order in which they happened."""
    players, said = (np.concatenate([getattr(run, name) for run in runs]) for name in ("players", "said"))
    lengths, words = [len(run.players) for run in runs], sorted(pd.unique(said.ravel()))  # so that both can be compared
    return pd.DataFrame(
        {
            "run": np.repeat(np.arange(len(runs)), lengths),
            "step": np.concatenate([np.arange(length) for length in lengths]),
            "agent": players[:, 0],
            "partner": players[:, 1],
            "said": pd.Categorical(said[:, 0], words),
            "heard": pd.Categorical(said[:, 1], words),
        }
    )


def choice_counts(runs: Sequence[RealRun]) -> pd.DataFrame:
    """Number of choices of each option by uncommitted agents in each memory; options in alphabetical order."""
    alike: dict[tuple[str, str, int], list[RealRun]] = defaultdict(list)
    for run in runs:
        alike[run.model, "_".join(sorted(run.options)), run.memory_length].append(run)
    columns, tables = ["model", "options", "memory_length"], []
    for subject, some in sorted(alike.items()):
        state, texts, said, free = memories_of(some)
        counted = pd.DataFrame({"state": state[free], "choice": said[free]}).value_counts().reset_index()
        words = np.array(sorted(some[0].options), dtype=object)
        counted["state"], counted["choice"] = texts[counted["state"]], words[counted["choice"]]
        counted = counted.sort_values(["state", "choice"]).assign(**dict(zip(columns, subject, strict=True)))
        tables.append(counted[[*columns, "state", "choice", "count"]])
    return pd.concat(tables, ignore_index=True)


def memories_of(runs: Sequence[RealRun]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Memories before each interaction, words, and whether a free agent said them, in runs of one subject.

    The first has numbers (interaction, 2) of texts "own,partner|own,partner|…", oldest first, which come second. Words
    (interaction, 2) have numbers in alphabetical order.
    """
    words, length = sorted(runs[0].options), runs[0].memory_length
    lengths = [len(run.players) for run in runs]
    run = np.repeat(np.arange(len(runs)), lengths)
    players, names = pd.factorize(np.concatenate([run.players for run in runs]).ravel())
    players = run[:, None] * len(names) + players.reshape(-1, 2)
    said = np.concatenate([run.said for run in runs])
    said = pd.Categorical(said.ravel(), words).codes.astype(np.int64).reshape(-1, 2)
    last, rounds = 0, []
    for one in runs:  # numbers that grow through all runs
        own = np.arange(len(one.players)) if one.rounds is None else one.rounds
        rounds.append(last + own)
        last += len(one.players) + 1
    place = {name: k for k, name in enumerate(names.tolist())}
    committed = [
        k * len(names) + place[agent] for k, one in enumerate(runs) for agent in one.committed if agent in place
    ]
    past = past_slots(players, np.concatenate(rounds))
    # An interaction is 1 + its number, 0 is nothing
    pair = (1 + len(words) * said + said[:, ::-1]).ravel()
    begin = [1 + (len(words) + 1) * words.index(run.initial) if run.initial else 0 for run in runs]
    start = np.repeat(begin, 2 * np.array(lengths))

    def remembered(lag: int) -> np.ndarray:
        slots = past(lag)
        return np.where(slots < 0, start, pair[slots])

    number = np.zeros(len(pair), dtype=np.int64)
    for lag in range(1, length + 1):  # numbers stay below the number of memories, so that no product overflows
        number = pd.factorize(number * (len(words) ** 2 + 1) + remembered(lag))[0]
    _, example = np.unique(number, return_index=True)
    held = np.stack([remembered(lag)[example] for lag in range(length, 0, -1)], axis=1)
    told = ["", *(f"{own},{partner}" for own in words for partner in words)]
    texts = np.array(["|".join(told[code] for code in row if code) for row in held.tolist()], dtype=object)
    return number.reshape(-1, 2), texts, said, ~np.isin(players, committed)


def past_slots(players: np.ndarray, rounds: np.ndarray) -> Callable[[int], np.ndarray]:
    """A function of a lag: the slot of the same agent so many of its interactions ago, -1 where there was none.

    A slot is one player of one interaction. `players` (interaction, 2) have numbers that differ between runs, `rounds`
    (interaction,) numbers that grow with the interactions: those of one round are not past to each other.
    """
    agent, when, place = players.ravel(), np.repeat(rounds, 2), np.arange(players.size)
    order = np.argsort(agent, kind="stable")
    changes = [np.diff(one[order], prepend=one[order[:1]] - 1) != 0 for one in (agent, when)]
    first, now = (np.maximum.accumulate(np.where(new, place, 0)) for new in (changes[0], changes[0] | changes[1]))

    def ago(lag: int) -> np.ndarray:
        slots = np.empty_like(order)
        slots[order] = np.where(now - lag >= first, order[np.maximum(now - lag, 0)], -1)
        return slots

    return ago
