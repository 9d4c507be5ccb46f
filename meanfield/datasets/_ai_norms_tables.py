"""Tables of the runs of real populations: their ends, the choices by memory, and every interaction."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

import numpy as np
import pandas as pd

from meanfield.datasets._ai_norms_archive import Answers, Comprehension, RealRun


def runs_table(runs: Sequence[RealRun]) -> pd.DataFrame:
    """A row for each run."""
    rows = []
    for number, run in enumerate(runs):
        last = run.said[-3 * len(run.agents) :]
        words, counts = np.unique(last, return_counts=True)
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
                "converged": run.converged,
                "agreed_at_end": _last_streak(run.said[:, 0] == run.said[:, 1]),
                "agreed_at_most": _longest_streak((run.said[:, 0] == run.said[:, 1]) & (run.said[:, 0] != run.initial)),
            }
        )
    return pd.DataFrame(rows)


def _last_streak(success: np.ndarray) -> int:
    failures = np.flatnonzero(~success)
    return len(success) - 1 - int(failures[-1]) if len(failures) else len(success)


def _longest_streak(success: np.ndarray) -> int:
    failures = np.flatnonzero(~success)
    return int(np.diff(failures, prepend=-1, append=len(success)).max()) - 1


def events_table(runs: Sequence[RealRun]) -> pd.DataFrame:
    """A row for each interaction, in the order in which they happened."""
    players, said = (np.concatenate([getattr(run, name) for run in runs]) for name in ("players", "said"))
    lengths, words = [len(run.players) for run in runs], np.unique(said)  # both columns can be compared
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
    """How often uncommitted agents in each memory made each choice; options in alphabetical order."""
    count: Counter[tuple[str, str, int, str, str]] = Counter()
    for run in runs:
        subject = run.model, "_".join(sorted(run.options)), run.memory_length
        begin = [f"{run.initial},{run.initial}"] * (run.memory_length if run.initial else 0)
        memory = {agent: deque(begin, run.memory_length) for agent in run.agents}
        for players, said in zip(run.players.tolist(), run.said.tolist(), strict=True):
            for agent, own, other in zip(players, said, said[::-1], strict=True):
                if agent not in run.committed:
                    count[*subject, "|".join(memory[agent]), own] += 1
                memory[agent].append(f"{own},{other}")
    rows = [(*subject, number) for subject, number in sorted(count.items())]
    return pd.DataFrame(rows, columns=["model", "options", "memory_length", "state", "choice", "count"])


def comprehension_table(answers: Sequence[Comprehension]) -> pd.DataFrame:
    """A row for each model and question about the prompt."""
    columns = ["model", "file", "question", "accuracy", "number"]
    return pd.DataFrame([[getattr(one, name) for name in columns] for one in answers], columns=columns)


def answers_table(answers: Sequence[Answers]) -> pd.DataFrame:
    """How often single agents, asked outside of a population, made each choice with each memory."""
    rows = [
        (one.model, one.file, "|".join(",".join(pair) for pair in one.memory), choice, number)
        for one in answers
        for choice, number in sorted(Counter(one.answers).items())
    ]
    return pd.DataFrame(rows, columns=["model", "file", "state", "choice", "count"])
