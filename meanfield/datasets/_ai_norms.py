"""Outcomes of real populations of language models ([000], [001])."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from tqdm import tqdm

from meanfield.datasets._ai_norms_archive import Archive, read_archive
from meanfield.datasets._ai_norms_tables import choice_counts, events_table, runs_table
from meanfield.datasets._fetch import download
from meanfield.toolbox._csv import check_columns, read_csv
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._files import path_of

COLUMNS = {
    "choice_counts.csv.gz": ("model", "options", "memory_length", "state", "choice", "count"),
    "runs.csv": (
        *("model", "experiment", "options", "memory_length", "n_agents", "n_committed", "initial_consensus"),
        *("committed_word", "interactions", "success_last_3N", "majority_word_last_3N", "majority_share_last_3N"),
    ),
}
ARCHIVES = {
    "llama31_data.zip": "139a35d212e4e8069a4f697f17dd91eeb1ce389326fcd443af3b4207e8f2f648",
    "llama3_data.zip": "b7cfc759e52bf6d1dc358664eec799d315ca96d4020a93847048aa45fd900616",
    "claude_data.zip": "dd1f7132f24b7c16c0a37abd123122dc14a8b6800cf66eec42d0906e3d90ae36",
    "llama2_data.zip": "0e0e4263ea9505f992f15e3264ebdb6a54869404e9235f70c209836cab6c91c5",
}
URL = "https://github.com/Ariel-Flint-Ashery/AI-norms/raw/e57aeef151a46108fd1521c66e345e557e57dbf6/data/"
FOLDERS = ("", "ai_norms", "data")  # of a path in which the files may lie; the last in a clone of the repository


class RealPopulations(NamedTuple):
    """Outcomes of real populations; the last four tables only where archives were read.

    Attributes
    ----------
    choice_counts
        How often (`count`) an uncommitted agent of `model`, offered `options`, in memory `state`
        ("own,partner|own,partner|…", oldest first; '' when empty) made `choice`.
    runs
        One row for each run: `options`, joined by blanks, or by '_' if from a log; `experiment` (from_empty,
        from_consensus or committed), its length in `interactions`, and the success rate, the majority word and its
        share over the last 3N of them. Some runs from_consensus and committed stop at a fixed length: without a flip
        they are censored, not negative. From archives also `run`, its number in `events`; its `file`;
        `committed_agents`, their numbers, and `committed_from`, how many interactions of the run were over when these
        began to keep to their word; `converged`, whether the file says that the run was stopped because it had
        converged; `agreed_at_end`, the number of interactions since the last failure; and `agreed_at_most`, the most
        successes in a row on other words than at the start.
    events
        One row for each interaction, in order: `run`, `step` from 0, `agent`, `partner`, and the words `said` by the
        first and `heard` from the second. From logs also `round`: interactions of one round were answered before any
        of them was known; and `agent_name`, `partner_name`.
    answers
        How often (`count`) a single agent of `model`, asked outside of populations, made `choice` with memory `state`;
        the `file` names the words it was offered.
    comprehension
        The share of right answers (`accuracy`) to each `question` about the prompt, and their `number`, 0 where the
        file does not say it.
    skipped
        What was not read, or not all of it: `file`, `run` ('' for all of the file) and `reason`.

    See Also
    --------
    from_events : makes it from a log, with an example
    ai_norms : reads the published runs
    """

    choice_counts: pd.DataFrame
    runs: pd.DataFrame
    events: pd.DataFrame | None = None
    answers: pd.DataFrame | None = None
    comprehension: pd.DataFrame | None = None
    skipped: pd.DataFrame | None = None


def ai_norms(
    path: str | os.PathLike[str] | None = None, *, ordered: bool = False, progress: bool = False
) -> RealPopulations:
    """The real LLM populations of [000] and [001]: choices by memory, ends of runs, and the runs in order.

    The runs are read from the archives published with [001], in a few seconds each. Where two tables that sum them up
    are found, those are read instead, unless `ordered`.

    Parameters
    ----------
    path
        A folder with `choice_counts.csv.gz` and `runs.csv`, or with archives (`llama31_data.zip`, `llama3_data.zip`,
        `claude_data.zip`, `llama2_data.zip`, or some of them), or with `ai_norms/` that holds these; or one archive.
        Such files are used as they are. Default: the folder in the environment variable MEANFIELD_DATA, then the cache,
        then a download of the four archives, SHA-256 checked, from the upstream repository.
    ordered
        Read archives even where the two tables are found.
    progress
        Show a progress bar.

    Raises
    ------
    InputError
        If nothing is found, a download differs from the published file, a table is not a CSV file of at most 16 MiB
        unpacked or lacks a column, or an archive is damaged or holds no run.

    See Also
    --------
    validation.populations.validate : against simulated populations

    Examples
    --------
    >>> real = meanfield.datasets.ai_norms(ordered=True)  # doctest: +SKIP
    >>> real.events.groupby("run").size().describe()  # doctest: +SKIP
    """
    given = path_of(path) if path is not None else os.environ.get("MEANFIELD_DATA") or None
    tables = _found(given, COLUMNS)
    if tables and not ordered:
        if missing := [name for name in COLUMNS if name not in tables]:
            raise InputError(f"path = {given}: expected {missing[0]} beside {next(iter(tables))}")
        return RealPopulations(*(_read(tables[name], COLUMNS[name]) for name in COLUMNS))
    alone = given is not None and Path(given).is_file()
    archives = [Path(given)] if alone else [*_found(given, ARCHIVES).values()]  # type: ignore[arg-type]
    if path is not None and not archives:
        tables_too = "" if ordered else f"{', '.join(COLUMNS)}, or "
        raise InputError(f"path = {path}: expected {tables_too}archives like {next(iter(ARCHIVES))}")
    if alone and not zipfile.is_zipfile(archives[0]):
        raise InputError(
            f"path = {path}: expected a zip archive; meanfield.datasets.from_events reads logs of your own"
        )
    archives = archives or [download(name, URL + name, sha256) for name, sha256 in ARCHIVES.items()]
    found = Archive([], [], [], [])
    for archive in tqdm(archives, "archives", disable=not progress, leave=False):
        read_archive(archive, found)
    return RealPopulations(
        choice_counts(found.runs),
        runs_table(found.runs),
        events_table(found.runs),
        pd.DataFrame(found.answers, columns=["model", "file", "state", "choice", "count"]),
        pd.DataFrame(found.comprehension, columns=["model", "file", "question", "accuracy", "number"]),
        pd.DataFrame(found.skipped, columns=["file", "run", "reason"]),
    )


def _found(given: str | os.PathLike[str] | None, names: Sequence[str] | dict) -> dict[str, Path]:
    """Files that are there, by name."""
    if given is None:
        return {}
    places = {name: [Path(given) / folder / name for folder in FOLDERS] for name in names}
    return {name: next(filter(Path.is_file, found)) for name, found in places.items() if any(map(Path.is_file, found))}


def _read(found: Path, columns: Sequence[str]) -> pd.DataFrame:
    # '' is the empty memory and '' in `initial_consensus` means none: neither is a missing number
    table = read_csv(found, keep_default_na=False, dtype={"state": str})
    check_columns(str(found), table, columns)
    return table
