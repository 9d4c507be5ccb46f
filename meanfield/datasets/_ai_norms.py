"""Outcomes of real populations of language models ([000], [001])."""

from __future__ import annotations

import os
from typing import NamedTuple

import pandas as pd

from meanfield.datasets._fetch import find_local
from meanfield.toolbox._csv import read_csv
from meanfield.toolbox._errors import InputError

COLUMNS = {
    "choice_counts.csv.gz": ("model", "options", "memory_length", "state", "choice", "count"),
    "runs.csv": (
        "model",
        "experiment",
        "options",
        "memory_length",
        "n_agents",
        "n_committed",
        "initial_consensus",
        "committed_word",
        "interactions",
        "success_last_3N",
        "majority_word_last_3N",
        "majority_share_last_3N",
    ),
}


class RealPopulations(NamedTuple):
    """Outcomes of real populations.

    Attributes
    ----------
    choice_counts
        How often (`count`) an uncommitted agent of `model`, offered `options`, in memory `state`
        ("own,partner|own,partner|…", oldest first; '' when empty) made `choice`.
    runs
        One row for each run: `experiment` (from_empty, from_consensus or committed), its length in `interactions`, and
        the success rate, the majority word and its share over the last 3N of them. Some runs from_consensus and
        committed stop at a fixed length: without a flip they are censored, not negative.
    """

    choice_counts: pd.DataFrame
    runs: pd.DataFrame


def ai_norms(path: str | os.PathLike[str] | None = None) -> RealPopulations:
    """Choice counts and run outcomes of the real LLM populations of [000] and [001].

    Parameters
    ----------
    path
        A folder with `choice_counts.csv.gz` and `runs.csv`, or with `ai_norms/` that holds them. Default: the folder in
        the environment variable MEANFIELD_DATA. The tables summarise the trajectories in the upstream repository
        (GitHub, Ariel-Flint-Ashery/AI-norms), so they can't be downloaded.

    Raises
    ------
    InputError
        If a table is not found, is no CSV file of at most 16 MiB unpacked, or lacks a column.

    See Also
    --------
    validation.populations.validate : against simulated populations
    """
    return RealPopulations(*(_read(name, path) for name in COLUMNS))


def _read(name: str, path: str | os.PathLike[str] | None) -> pd.DataFrame:
    found = find_local("ai_norms", name, path)
    if found is None:
        raise InputError(f"{name} was not found: pass its folder as path, or set MEANFIELD_DATA")
    # '' is the empty memory and '' in `initial_consensus` means none: neither is a missing number
    table = read_csv(found, keep_default_na=False, dtype={"state": str})
    missing = [column for column in COLUMNS[name] if column not in table.columns]
    if missing:
        raise InputError(f"{found}: lacks the column {', '.join(missing)}; expected {', '.join(COLUMNS[name])}")
    return table
