"""Agents of a log who say one word whatever they remember."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from meanfield.datasets._log_table import Complaints, Names, by_run
from meanfield.toolbox._arguments import is_number, shown
from meanfield.toolbox._errors import InputError

PLAYERS = ("agent", "partner")


def minorities_of(
    committed: Mapping[Any, str] | pd.DataFrame | None,
    committed_from: int | float | Mapping[Any, int | float] | None,
    table: pd.DataFrame,
    options: tuple[str, ...],
    runs: Names,
    agents: Names,
) -> pd.DataFrame:
    """Committed agents: `run`, `agent`, number of the `word`, and the step `since` which they say it."""
    if isinstance(committed, pd.DataFrame):
        if lacking := [name for name in ("run", "agent", "word") if [*committed.columns].count(name) != 1]:
            raise InputError(
                f"committed lacks the column {', '.join(lacking)}, or has it twice; expected run, agent, word"
            )
        rows = [
            (runs.find("committed: run", run), agent, word)
            for run, agent, word in zip(*(committed[name].tolist() for name in ("run", "agent", "word")), strict=True)
        ]
    elif committed is not None and not isinstance(committed, Mapping):
        raise InputError(f"committed is a {type(committed).__name__}: expected words by agent, or a pandas.DataFrame")
    else:
        rows = [(run, agent, word) for run in runs.numbers.values() for agent, word in (committed or {}).items()]
    found: dict[tuple[int, int], int] = {}
    words: dict[int, int] = {}
    for run, agent, word in rows:
        if not isinstance(word, str) or word not in options:
            raise InputError(f"committed: agent {agent} has {shown(word)}: expected one of {', '.join(options)}")
        found[run, agents.find("committed: agent", agent, strangers=True)] = options.index(word)
        if words.setdefault(run, options.index(word)) != options.index(word):
            raise InputError(f"committed: run {run} has agents committed to {word!r} and another word: expected one")
    since = by_run("committed_from", committed_from, runs, None)
    idle = [run for run, step in since.items() if step is not None and run not in words]
    if idle and (isinstance(committed_from, Mapping) or not words):
        raise InputError(f"committed_from = {shown(committed_from)}: run {idle[0]} has no committed agents")
    first, last = (table.groupby("run")["step"].agg(which).to_dict() for which in ("min", "max"))
    for run in words:
        step = first[run] if since[run] is None else since[run]
        if not is_number(step) or step > last[run]:
            raise InputError(f"committed_from = {shown(step)}: expected a step of the run, at most {last[run]:g}")
        since[run] = max(step, first[run])
    return pd.DataFrame(
        [(run, agent, word, since[run]) for (run, agent), word in found.items()],
        columns=["run", "agent", "word", "since"],
    )


def check_committed(
    complaints: Complaints, table: pd.DataFrame, minorities: pd.DataFrame, options: tuple[str, ...]
) -> None:
    if minorities.empty:
        return
    kept = "the word it is committed to from the step committed_from on, by default the first"
    for side, word in zip(PLAYERS, ("said", "heard"), strict=True):
        told = table[["run", side]].merge(minorities, "left", left_on=["run", side], right_on=["run", "agent"])
        wrong = (told["since"] <= table["step"]) & (told["word"] != table[word]) & (table[word] >= 0)
        said = pd.Series([options[code] for code in table[word]], dtype=object)
        complaints.add(wrong.to_numpy(), f"{word} by a committed {side}", kept, said)
