"""Runs of anybody's population of language models, from a log of its interactions."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Collection, Mapping, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from meanfield.datasets._ai_norms import RealPopulations
from meanfield.datasets._ai_norms_archive import RealRun
from meanfield.datasets._ai_norms_tables import choice_counts, events_table, memories_of, runs_table
from meanfield.datasets._log_table import (
    MISSING,
    NO_ANSWER,
    UNFIT,
    UNKNOWN,
    Complaints,
    Names,
    Table,
    by_run,
    checked_columns,
    codes_of,
    is_missing,
    names_of,
    numbers_of,
    read_table,
    rows_of,
    texts_in,
    with_columns,
)
from meanfield.toolbox._arguments import is_number, shown, whole_number
from meanfield.toolbox._errors import InputError

COLUMNS = ("run", "step", "agent", "partner", "said", "heard")
PLAYERS = ("agent", "partner")
MEMORIES = ("memory", "partner_memory")
SEPARATORS = "_,|"  # between words in the tables of runs, options and memories
EXPECTED_WORD = (
    "a word, not all blanks, without '_', ',', '|' and NUL; words={…} maps every answer to such a word, as in "
)
EXPECTED_WORD += "{'New_York': 'New York', 'Rome': 'Rome'}"
READINGS = ("sequential", "simultaneous")


def from_events(
    events: Table,
    *,
    memory_length: int,
    columns: Mapping[str, str | None] | None = None,
    words: Sequence[str] | Mapping[str, str] | None = None,
    missing: Sequence[str] = (),
    same_step: str | None = None,
    initial: str | Mapping[Any, str] = "",
    committed: Mapping[Any, str] | pd.DataFrame | None = None,
    committed_from: int | float | Mapping[Any, int | float] | None = None,
    n_agents: int | Mapping[Any, int] | None = None,
    model: str = "model",
    sep: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8-sig",
) -> RealPopulations:
    """Runs in order, of one model, words and memory length, from a log with a row for each interaction.

    Both players of an interaction say a word, and each remembers (own word, partner's word) of the last
    `memory_length` of them. A log with a row for each message becomes such a table by `interactions`.

    Parameters
    ----------
    events
        A table, as from `pandas.read_excel` or `pandas.read_parquet`, or a file that ends in .csv, .tsv, .txt, .jsonl,
        .ndjson or .json (a list of objects), also with .gz. Columns:

        - `run`, the name or whole number of the run;
        - `step`, a number that orders the interactions of a run. Several pairs may have one step: if no agent is in two
          of them, their order does not matter, and they are numbered as they stand;
        - `agent` and `partner`, the names or whole numbers of the two players. Names are numbered, alike in both
          columns;
        - `said`, the word of the first, and `heard`, the word of the second;
        - optionally `memory`, what the first remembered before ("own,partner|own,partner|…", oldest first; '' when
          empty), and `partner_memory`: they are compared with the events.
    memory_length
        H, the interactions that an agent remembers.
    columns
        What the log calls these columns, as in `{"agent": "player_1", "said": "data.choice"}`; a dot leads into objects
        of JSON. None stands for one run, or for steps in the order of rows.
    words
        The options; or a mapping of answers to options. Default: all words that were said, in alphabetical order. A
        warning tells which differ only by case, blanks, punctuation or invisible signs, or have nothing else.
    missing
        Further texts that mean 'no answer', beside empty and missing cells and na, n/a, nan, None and null in the usual
        spellings; none of them does if it is in `words`. The interaction is left out. A warning and the table `skipped`
        tell how many.
    same_step
        Where an agent is in two pairs of a step: 'sequential' if they met in the order of rows, 'simultaneous' if all
        answers of the step were given before any of them was known.
    initial
        The word in all memories at the start, '' for empty ones: in every run, or by run.
    committed
        Word by agent, for agents who say one word whatever they remember, in every run; or a DataFrame with the
        columns `run`, `agent` and `word`. All committed agents of a run have the same word.
    committed_from
        The step from which they do, in every run or by run. What they say before it is not counted as a choice.
        Default: from the start.
    n_agents
        N of every run, or by run. Default: the number of agents who are in the log of the run or are committed.
    model
        The model's name in the tables.
    sep, encoding
        How a text file is written. Default: commas, or tabs in .tsv; UTF-8 with or without a byte-order mark.
    decimal
        The decimal mark of steps that are text.

    Returns
    -------
    `RealPopulations` with `choice_counts`, `runs` and `events`, sorted by run and step; `options` are joined by '_'. If
    several interactions have one step or a step is not whole, `step` counts anew from 0 in each run. `events` then has
    `round`, the step of the log, unless the reading is 'sequential'. Where runs or agents have names, `runs` has
    `name`, and `events` has `agent_name` and `partner_name`.

    Raises
    ------
    InputError
        If the file can't be read, or a column is missing or there twice. Cells and meetings are checked first, then the
        words of committed agents, then memories. Each check tells all it finds, with the numbers of rows from 0 after
        the header: a cell is not a name, number or word, an agent meets itself or is in two pairs of a step, a
        committed agent says another word, or a memory in the table differs from the events before.

    Warns
    -----
    UserWarning
        If answers are missing, or words look as if they were one, or none.

    See Also
    --------
    interactions : for a log with a row for each message
    ai_norms : the published runs, in the same form
    validation.populations.validate : against simulated populations

    Examples
    --------
    Two pairs meet in each round:

    >>> table = pd.DataFrame(
    ...     [(1, "ada", "bob", "A", "B"), (1, "cy", "dan", "B", "B"), (2, "cy", "ada", "B", "A")],
    ...     columns=["round", "player", "partner", "said", "heard"],
    ... )
    >>> names = {"run": None, "step": "round", "agent": "player"}
    >>> real = meanfield.datasets.from_events(table, memory_length=3, columns=names)
    >>> real.choice_counts
       model options  memory_length state choice  count
    0  model     A_B              3            A      1
    1  model     A_B              3            B      3
    2  model     A_B              3   A,B      A      1
    3  model     A_B              3   B,B      B      1
    >>> real.events[["run", "step", "agent", "partner", "said", "heard", "round", "agent_name"]]
       run  step  agent  partner said heard  round agent_name
    0    0     0      0        1    A     B      1        ada
    1    0     1      2        3    B     B      1         cy
    2    0     2      2        0    B     A      2         cy
    """
    memory_length = whole_number("memory_length", memory_length, 1, 1000)
    if not isinstance(model, str):
        raise InputError(f"model = {shown(model)}: expected its name")
    if same_step not in (None, *READINGS):
        raise InputError(f"same_step = {shown(same_step)}: expected one of {', '.join(READINGS)}, or None")
    log = with_columns(
        read_table(events, "events", sep, encoding), "events", checked_columns(columns), COLUMNS, MEMORIES
    )
    complaints = Complaints(len(log))
    agent_names, (agent, partner) = names_of(complaints, log, "agent", "partner")
    alone = (agent == partner) & ~complaints.rows
    run_names, (run,) = names_of(complaints, log, "run")
    steps = numbers_of(complaints, log, "step", decimal)
    complaints.add(alone, "an agent meets itself", "another partner")
    options, said = _words(complaints, log, words, missing)

    columns_of_numbers = zip(COLUMNS, (run, steps, agent, partner, *said.T), strict=True)
    table = pd.DataFrame(dict(columns_of_numbers))
    known = (said >= 0).all(axis=1)
    _check_meetings(complaints, table, known, same_step)
    complaints.raise_any()
    minorities = _minorities(committed, committed_from, table, options, run_names, agent_names)
    _check_committed(complaints, table, minorities, options)
    complaints.raise_any()
    begin = by_run("initial", initial, run_names, "")
    if strange := [word for word in begin.values() if not (isinstance(word, str) and word in ("", *options))]:
        raise InputError(f"initial = {shown(strange[0])}: expected '' or one of {', '.join(options)}")
    agents = _agents(table, minorities, by_run("n_agents", n_agents, run_names, None))
    file = "" if isinstance(events, pd.DataFrame) else Path(events).name
    skipped = None if known.all() else _skipped(log, known, file)

    table = table[known].sort_values(["run", "step"], kind="stable")
    subject = model, options, memory_length
    runs = _runs(table, minorities, agents, begin, file, subject, same_step)
    _check_memories(complaints, log, table.index.to_numpy(), runs)
    complaints.raise_any()
    ends, ordered = runs_table(runs), events_table(runs)
    ends["options"] = "_".join(options)  # which may have blanks
    ends["run"], ordered["run"] = table["run"].unique(), table["run"].to_numpy()
    steps = table["step"].to_numpy()
    whole = (steps == np.round(steps)).all()
    steps = steps.astype(np.int64) if whole else steps
    if whole and not table.duplicated(["run", "step"]).any():
        ordered["step"] = steps
    elif same_step != "sequential":
        ordered["round"] = steps
    if run_names.named:
        ends["name"] = run_names.texts[ends["run"]]
    if agent_names.named:
        for side in ("agent", "partner"):
            ordered[f"{side}_name"] = pd.Categorical.from_codes(ordered[side], agent_names.texts)
    return RealPopulations(choice_counts(runs), ends, ordered, skipped=skipped)


def _words(
    complaints: Complaints,
    log: pd.DataFrame,
    words: Sequence[str] | Mapping[str, str] | None,
    missing: Sequence[str],
) -> tuple[tuple[str, ...], np.ndarray]:
    """The options, and the number of the word said and heard, (row, 2); negative where there is none."""
    if isinstance(missing, str) or not _all_texts(missing):
        raise InputError(f"missing = {shown(missing)}: expected a list of answers")
    if words is not None and (isinstance(words, str) or not _all_texts(words)):
        raise InputError(f"words = {shown(words)}: expected a list of words, or a mapping of answers to words")
    sides, missing = ("said", "heard"), (*NO_ANSWER, *missing)
    expected = f"{EXPECTED_WORD}, and missing=[…] lists texts that are no answer"
    if words is None:
        said = {cell for side in sides for cell in texts_in(log[side])}
        names = {word: word for word in sorted(said - {*missing}) if _is_word(word)}
    else:
        names = dict(words) if isinstance(words, Mapping) else {word: word for word in words}
        expected = (
            f"one of {', '.join(map(str, names))}; words={{'a.': 'A'}} maps answers, and missing=[…] lists others"
        )
    if strange := [word for word in names.values() if not _is_word(word)]:
        raise InputError(f"words = {strange[0]!r}: expected {EXPECTED_WORD}")
    options = tuple(dict.fromkeys(names.values()))
    codes = dict.fromkeys(missing, MISSING) | {word: options.index(name) for word, name in names.items()}
    found = np.stack([codes_of(log[side], codes) for side in sides], axis=1)
    for side, column in zip(sides, found.T, strict=True):
        complaints.add(column == UNKNOWN, side, expected, log[side])
    repeated = not isinstance(words, Mapping) and words is not None and len(options) < len(words)
    if (found == MISSING).any(axis=1).all():
        complaints.found.append("every interaction lacks an answer: expected some with both")
    elif not (found == UNKNOWN).any() and (len(options) < 2 or repeated):
        given = list(options if words is None or isinstance(words, Mapping) else words)
        complaints.found.append(f"words = {given}: expected at least two that differ")
    if words is None:
        _tell_doubtful(options, np.bincount(found[found >= 0], minlength=len(options)))
    return options, found


def _tell_doubtful(options: tuple[str, ...], counts: np.ndarray) -> None:
    """A warning of words that may be one word or none, with how often each was said."""
    alike: dict[str, list[str]] = {}
    for word, n in zip(options, counts, strict=True):
        alike.setdefault(_letters(word), []).append(f"{word!r} ({n})")
    told = [
        f"{', '.join(some)} {'differ only by case, blanks,' if key else 'are only'} punctuation or invisible signs"
        for key, some in alike.items()
        if len(some) > 1 or not key
    ]
    if told:
        remedy = "words={'a': 'A', …} maps answers to options, words=[…] lists all options, missing=['?'] no answers"
        warnings.warn(f"options are kept as they are, and {'; '.join(told)}: {remedy}", stacklevel=4)


def _letters(word: str) -> str:
    """The word without case, blanks, punctuation and signs that are not seen."""
    plain = unicodedata.normalize("NFKC", word).casefold()
    return "".join(sign for sign in plain if not sign.isspace() and unicodedata.category(sign)[0] not in "CP")


def _all_texts(given: object) -> bool:
    return (
        isinstance(given, Collection) and getattr(given, "ndim", 1) > 0 and all(isinstance(one, str) for one in given)
    )


def _is_word(word: object) -> bool:
    return isinstance(word, str) and bool(word.strip()) and not {*word} & {*SEPARATORS} and not UNFIT.search(word)


def _check_meetings(complaints: Complaints, table: pd.DataFrame, known: np.ndarray, same_step: str | None) -> None:
    if same_step is not None:
        return
    known = known & ~complaints.rows
    part = table[known]
    low, high = part[["agent", "partner"]].min(axis=1), part[["agent", "partner"]].max(axis=1)
    mirrored = part.assign(agent=low, partner=high).duplicated(["run", "step", "agent", "partner"], keep=False)
    both = pd.concat([part[["run", "step", side]].set_axis(["run", "step", "agent"], axis=1) for side in PLAYERS])
    twice = both.duplicated(keep=False).to_numpy().reshape(2, -1).any(axis=0) & ~mirrored
    wrong = np.zeros((2, len(table)), dtype=bool)
    wrong[0, known], wrong[1, known] = mirrored, twice
    complaints.add(
        wrong[0],
        "two agents meet twice in a step",
        "one row for each interaction (if each row is a message, meanfield.datasets.interactions makes the table of "
        "them); or, if they did meet twice, same_step",
    )
    complaints.add(
        wrong[1],
        "an agent is in several pairs of a step",
        "one pair, or same_step='sequential' (the rows are in order) or 'simultaneous' (nobody knew the other answers)",
    )


def _minorities(
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


def _check_committed(
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


def _agents(table: pd.DataFrame, minorities: pd.DataFrame, sizes: dict[int, int | None]) -> dict[int, tuple[int, ...]]:
    """The agents of each run; those who are not in the log have numbers that no other has."""
    everyone = [table[["run", side]].set_axis(["run", "agent"], axis=1) for side in PLAYERS]
    met = pd.concat([*everyone, minorities[["run", "agent"]]]).drop_duplicates().sort_values(["run", "agent"])
    found: dict[int, tuple[int, ...]] = {}
    for run, agents in met.groupby("run")["agent"]:
        known, n_agents = agents.tolist(), sizes[run]
        if n_agents is not None:
            lacking = whole_number("n_agents", n_agents, len(known), 10**5) - len(known)
            taken = {*known}
            known += islice((number for number in count() if number not in taken), lacking)
        found[run] = tuple(known)
    return found


def _skipped(log: pd.DataFrame, known: np.ndarray, file: str) -> pd.DataFrame:
    """A row for each run with interactions that lack an answer, after a warning."""
    lacking = f"{(~known).sum()} of {len(known)} interactions lack an answer"
    warnings.warn(f"{lacking} and are left out: {rows_of(np.flatnonzero(~known))} (from 0)", stacklevel=3)
    each = (
        pd.DataFrame({"run": log["run"], "lacking": ~known}).groupby("run", sort=False)["lacking"].agg(["sum", "size"])
    )
    each = each[each["sum"] > 0]
    told = [f"{some} of {size} interactions lack an answer" for some, size in each.itertuples(index=False)]
    return pd.DataFrame({"file": file, "run": [str(run) for run in each.index], "reason": told})


def _runs(
    table: pd.DataFrame,
    minorities: pd.DataFrame,
    agents: dict[int, tuple[int, ...]],
    begin: dict[int, str],
    file: str,
    subject: tuple[str, tuple[str, ...], int],
    same_step: str | None,
) -> list[RealRun]:
    """The runs of a table in order."""
    model, options, memory_length = subject
    text = np.array(options, dtype=object)
    columns = table[[*PLAYERS]].to_numpy(), text[table[["said", "heard"]].to_numpy()], table["step"].to_numpy()
    numbers, starts = np.unique(table["run"].to_numpy(), return_index=True)
    committed = dict(iter(minorities.groupby("run")))
    runs = []
    for run, players, said, step in zip(numbers, *(np.split(one, starts[1:]) for one in columns), strict=True):
        few, word, before = (), "", 0
        if run in committed:
            few = tuple(committed[run]["agent"].tolist())
            word = options[committed[run]["word"].iloc[0]]
            before = int(np.searchsorted(step, committed[run]["since"].iloc[0]))
        new = np.diff(step, prepend=step[0]) != 0
        rounds = None if same_step == "sequential" else np.cumsum(new)
        of_all = file, model, options, memory_length
        runs.append(RealRun(*of_all, agents[run], begin[run], few, word, players, said, False, before, rounds))
    return runs


def _check_memories(complaints: Complaints, log: pd.DataFrame, rows: np.ndarray, runs: list[RealRun]) -> None:
    """Columns of memories against what the events before leave in them."""
    if not {*MEMORIES} & {*log.columns}:
        return
    state, texts, *_ = memories_of(runs)
    for side, name in enumerate(MEMORIES):
        if name not in log:
            continue
        expected = pd.Series("", index=log.index, dtype=object)
        expected.iloc[rows] = texts[state[:, side]]
        # In files an empty memory is often a missing value
        told = pd.Series(["" if is_missing(cell) else cell for cell in log[name].tolist()], dtype=object)
        wrong = np.zeros(len(log), dtype=bool)
        wrong[rows] = [
            not (isinstance(cell, str) and cell == text)
            for cell, text in zip(told.iloc[rows], expected.iloc[rows], strict=True)
        ]
        after = f"{expected[wrong.argmax()]!r} there (row {wrong.argmax()}) after the events before it"
        complaints.add(wrong, name, f"{after}, with memory_length = {runs[0].memory_length}", told)
