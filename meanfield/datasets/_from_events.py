"""Runs of anybody's population of language models, from a table of its interactions."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from meanfield.datasets._ai_norms import RealPopulations
from meanfield.datasets._ai_norms_archive import RealRun
from meanfield.datasets._ai_norms_tables import choice_counts, events_table, runs_table
from meanfield.toolbox._arguments import whole_number
from meanfield.toolbox._csv import column_numbers
from meanfield.toolbox._errors import InputError

COLUMNS = ("run", "step", "agent", "partner", "said", "heard")
LARGEST = 2**53  # the least whole number that a float may not hold
SEPARATORS = " _,|"  # between words in the tables of runs, options and memories


def from_events(
    events: pd.DataFrame,
    *,
    memory_length: int,
    words: Sequence[str] | None = None,
    initial: str | Mapping[int, str] = "",
    committed: Mapping[int, str] | pd.DataFrame | None = None,
    n_agents: int | Mapping[int, int] | None = None,
    model: str = "model",
) -> RealPopulations:
    """Runs in order, of one model, words and memory length, from a table with a row for each interaction.

    Both players of an interaction say a word, and each remembers (own word, partner's word) of the last
    `memory_length` of them.

    Parameters
    ----------
    events
        Columns `run`, a whole number; `step`, a whole number that orders the interactions of a run; `agent` and
        `partner`, the two players, whole numbers; `said`, the word of the first, and `heard`, the word of the second.
        Optionally `memory`, what the first remembered before ("own,partner|own,partner|…", oldest first; '' when
        empty), and `partner_memory`: they are compared with the events. Each interaction has one row: of a log with
        a row for each player, keep those with agent < partner.
    memory_length
        H, the interactions that an agent remembers.
    words
        The options. Default: all words that were said, in alphabetical order.
    initial
        The word in all memories at the start, '' for empty ones: in every run, or by run.
    committed
        Word by agent, for agents who say one word whatever they remember, in every run; or a DataFrame with the
        columns `run`, `agent` and `word`. All committed agents of a run have the same word.
    n_agents
        N of every run, or by run. Default: the number of agents who met anyone in the run or are committed.
    model
        The model's name in the tables.

    Returns
    -------
    `RealPopulations` with `choice_counts`, `runs` and `events`, sorted by run and step.

    Raises
    ------
    InputError
        If a column is missing, a number is not whole, an interaction has two rows, an agent meets itself, a word is not
        an option, a committed agent says another one, or a memory in the table differs from the events before.

    See Also
    --------
    ai_norms : the published runs, in the same form
    validation.populations.validate : against simulated populations

    Examples
    --------
    >>> table = pd.DataFrame(
    ...     [(0, 0, 1, 2, "A", "B"), (0, 1, 2, 3, "A", "A")],
    ...     columns=["run", "step", "agent", "partner", "said", "heard"],
    ... )
    >>> meanfield.datasets.from_events(table, memory_length=3).choice_counts
       model options  memory_length state choice  count
    0  model     A_B              3            A      2
    1  model     A_B              3            B      1
    2  model     A_B              3   B,A      A      1
    """
    memory_length = whole_number("memory_length", memory_length, 1, 1000)
    table = _checked(events)
    options = _options(table, words)
    numbers = np.sort(table["run"].unique())
    initials, sizes = _by_run("initial", initial, numbers, ""), _by_run("n_agents", n_agents, numbers, None)
    if strange := [word for word in initials.values() if word and word not in options]:
        raise InputError(f"initial = {strange[0]!r}: expected '' or one of {', '.join(options)}")
    minorities = _minorities(committed, table, options)
    runs = []
    for run in numbers.tolist():
        part, minority = table[table["run"] == run], minorities.get(run, {})
        _check_committed(run, part, minority)
        for name in ("memory", "partner_memory"):
            if name in part:
                _check_memories(part, name, memory_length, initials[run])
        agents = _agents(part, minority, sizes[run])
        players, said = part[["agent", "partner"]].to_numpy(), part[["said", "heard"]].to_numpy(str)
        word, begin = next(iter(minority.values()), ""), initials[run]
        runs.append(
            RealRun("", model, options, memory_length, agents, begin, tuple(minority), word, players, said, False)
        )
    ends, ordered = runs_table(runs), events_table(runs)
    ends["run"] = numbers[ends["run"].to_numpy()]
    ordered["run"] = numbers[ordered["run"].to_numpy()]
    ordered["step"] = table["step"].to_numpy()
    return RealPopulations(choice_counts(runs), ends, ordered)


def _checked(events: pd.DataFrame) -> pd.DataFrame:
    """The table with whole numbers, by run and step."""
    if not isinstance(events, pd.DataFrame):
        raise InputError(f"events is a {type(events).__name__}: expected a pandas.DataFrame")
    if missing := [name for name in COLUMNS if name not in events.columns]:
        raise InputError(f"events lacks the column {', '.join(missing)}; expected {', '.join(COLUMNS)}")
    if events.empty:
        raise InputError("events is empty: expected a row for each interaction")
    table = events.reset_index(drop=True)
    for name in COLUMNS[:4]:
        values = column_numbers(table[name])
        good = (np.abs(values) <= LARGEST) & (values == np.round(values))
        if not good.all():
            given = table[name].tolist()[int(good.argmin())]
            advice = "; pandas.factorize numbers names" if name != "step" else ""
            raise InputError(f"{name} = {given!r}: expected a whole number{advice}")
        table[name] = values.astype(np.int64)
    alone = (table["agent"] == table["partner"]).to_numpy()
    if alone.any():
        row = table[alone].iloc[0]
        raise InputError(f"agent = {row['agent']} in run {row['run']}, step {row['step']}: expected another partner")
    twice = table.duplicated(["run", "step"]).to_numpy()
    if twice.any():
        row = table[twice].iloc[0]
        raise InputError(
            f"step = {row['step']} of run {row['run']} has two rows: expected one for each interaction; of a log with "
            "a row for each player, keep those with agent < partner"
        )
    return table.sort_values(["run", "step"], kind="stable")


def _options(table: pd.DataFrame, words: Sequence[str] | None) -> tuple[str, ...]:
    said = pd.unique(table[["said", "heard"]].to_numpy().ravel())
    if strange := [word for word in said if not isinstance(word, str) or not word or set(word) & set(SEPARATORS)]:
        raise InputError(f"said = {strange[0]!r}: expected a word without blanks, '_', ',' and '|'")
    options = tuple(sorted(said) if words is None else words)
    if len(set(options)) < max(2, len(options)):
        raise InputError(f"words = {list(options)}: expected at least two that differ")
    if strange := [word for word in options if not isinstance(word, str) or not word or set(word) & set(SEPARATORS)]:
        raise InputError(f"words = {strange[0]!r}: expected words without blanks, '_', ',' and '|'")
    if unknown := [word for word in said if word not in options]:
        raise InputError(f"said = {unknown[0]!r}: expected one of {', '.join(options)}")
    return options


def _by_run(name: str, given: Any, numbers: np.ndarray, default: Any) -> dict[int, Any]:
    """The value of each run, of one for all runs or a mapping."""
    if not isinstance(given, Mapping):
        return dict.fromkeys(numbers.tolist(), given)
    if strange := [run for run in given if run not in numbers]:
        raise InputError(f"{name}: run = {strange[0]!r}: expected a run of the events")
    return {run: given.get(run, default) for run in numbers.tolist()}


def _minorities(
    committed: Mapping[int, str] | pd.DataFrame | None, table: pd.DataFrame, options: tuple[str, ...]
) -> dict[int, dict[int, str]]:
    """The word of each committed agent, by run."""
    if isinstance(committed, pd.DataFrame):
        if missing := [name for name in ("run", "agent", "word") if name not in committed.columns]:
            raise InputError(f"committed lacks the column {', '.join(missing)}; expected run, agent, word")
        rows = committed[["run", "agent", "word"]].to_numpy().tolist()
    elif committed is None or isinstance(committed, Mapping):
        rows = [(run, agent, word) for run in table["run"].unique() for agent, word in (committed or {}).items()]
    else:
        raise InputError(f"committed is a {type(committed).__name__}: expected words by agent, or a pandas.DataFrame")
    rows = [(_whole("run", run), _whole("agent", agent), word) for run, agent, word in rows]
    found: dict[int, dict[int, str]] = defaultdict(dict)
    for run, agent, word in rows:
        if word not in options:
            raise InputError(f"committed: agent {agent} has {word!r}: expected one of {', '.join(options)}")
        found[run][agent] = word
        if len(set(found[run].values())) > 1:
            raise InputError(f"committed: run {run} has agents committed to {word!r} and another word: expected one")
    if strange := [run for run in found if run not in set(table["run"])]:
        raise InputError(f"committed: run = {strange[0]}: expected a run of the events")
    return found


def _whole(name: str, value: Any) -> int:
    number = column_numbers(pd.Series([value]))[0]
    if not (np.abs(number) <= LARGEST and number == np.round(number)):
        raise InputError(f"committed: {name} = {value!r}: expected a whole number")
    return int(number)


def _check_committed(run: int, part: pd.DataFrame, minority: dict[int, str]) -> None:
    for agent, word in minority.items():
        said = [*part["said"][part["agent"] == agent], *part["heard"][part["partner"] == agent]]
        if other := [one for one in said if one != word]:
            raise InputError(f"committed: agent {agent} says {other[0]!r} in run {run}: expected {word!r} alone")


def _agents(part: pd.DataFrame, minority: dict[int, str], n_agents: int | None) -> tuple[int, ...]:
    met = sorted({*part["agent"], *part["partner"], *minority})
    if n_agents is None:
        return tuple(met)
    # Agents whom nobody met have no number in the events.
    free = (number for number in range(10**9) if number not in set(met))
    missing = whole_number("n_agents", n_agents, len(met), 10**5) - len(met)
    return tuple([*met, *(next(free) for _ in range(missing))])


def _check_memories(part: pd.DataFrame, name: str, memory_length: int, initial: str) -> None:
    """InputError where a column of memories differs from what the events before it leave in them."""
    begin = [f"{initial},{initial}"] * (memory_length if initial else 0)
    memory: dict[int, deque[str]] = defaultdict(lambda: deque(begin, memory_length))
    owner = "agent" if name == "memory" else "partner"
    columns = ["agent", "partner", "said", "heard"]
    # In files an empty memory is often a missing value
    memories = part[name].fillna("")
    for row, told, step, whose in zip(part[columns].to_numpy(), memories, part["step"], part[owner], strict=True):
        agent, partner, said, heard = row
        if told != (expected := "|".join(memory[whose])):
            raise InputError(
                f"{name} = {told!r} of agent {whose} in run {part['run'].iloc[0]}, step {step}: "
                f"expected {expected!r} after the events before it, with memory_length = {memory_length}"
            )
        memory[agent].append(f"{said},{heard}")
        memory[partner].append(f"{heard},{said}")
