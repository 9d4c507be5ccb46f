"""Language-model populations that were really run ([000], [001])."""

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
    """What real populations did.

    Attributes
    ----------
    choice_counts
        How often (`count`) an uncommitted agent of `model`, offered `options`, in memory `state`
        ("own,partner|own,partner|…", oldest first; '' when empty) made `choice`.
    runs
        A row a run: `experiment` is from_empty, from_consensus or committed; `interactions` it lasted, and the success
        rate, majority word and its share over the last 3N of them. Of the last two kinds, some stop at a fixed length:
        a run that ended without a flip is censored, not negative.
    """

    choice_counts: pd.DataFrame
    runs: pd.DataFrame


def ai_norms(path: str | os.PathLike[str] | None = None) -> RealPopulations:
    """Choice counts and run outcomes of real LLM populations of [000] and [001].

    Parameters
    ----------
    path
        A folder with `choice_counts.csv.gz` and `runs.csv` (or with `ai_norms/` that holds them). Without it, the
        folder in MEANFIELD_DATA. The two tables are summaries of the trajectories in the upstream repository
        (GitHub, Ariel-Flint-Ashery/AI-norms), so there is no single file to download.

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
        raise InputError(f"{name}: give the folder that holds it as path, or set MEANFIELD_DATA")
    # '' is the empty memory and '' in `initial_consensus` means none: neither is a missing number
    table = read_csv(found, keep_default_na=False, dtype={"state": str})
    missing = [column for column in COLUMNS[name] if column not in table.columns]
    if missing:
        raise InputError(f"{found}: lacks the column {', '.join(missing)}; expected {', '.join(COLUMNS[name])}")
    return table
