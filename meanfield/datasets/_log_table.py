"""Tables of logs, from files or from memory: their columns by name, their cells as they are written."""

from __future__ import annotations

import gzip
import json
import math
import os
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from meanfield.toolbox._arguments import is_number, shown
from meanfield.toolbox._csv import csv_rows
from meanfield.toolbox._errors import InputError, reason
from meanfield.toolbox._files import existing_file

Table = pd.DataFrame | str | os.PathLike[str]

SEPARATORS = {".csv": ",", ".txt": ",", ".tsv": "\t", ".tab": "\t"}
ENDINGS = (*SEPARATORS, ".jsonl", ".ndjson", ".json")
REMEDY = "give sep={}, and decimal=',' if need be"
LARGEST = 2**53  # the least whole number that a float may not hold
MISSING, UNKNOWN = -1, -2  # beside codes of words
NO_ANSWER = ("", "na", "n/a", "NA", "N/A", "#N/A", "<NA>", "nan", "NaN", "None", "null", "NULL")
MOST_ROWS, MOST_VALUES = 20, 5  # in a message
UNFIT = re.compile("[\0\ud800-\udfff]")  # for files of tables
WHOLE = re.compile(r"-?[0-9]{1,15}(\.0+)?")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Complaints:
    """All that is wrong with a table, told at once."""

    def __init__(self, n_rows: int) -> None:
        self.found: list[str] = []
        self.rows = np.zeros(n_rows, dtype=bool)  # that some complaint names

    def add(self, wrong: np.ndarray, told: str, expected: str, cells: pd.Series | None = None) -> None:
        """Unless no row is `wrong`. The message gives what the `cells` of these rows hold."""
        rows = np.flatnonzero(wrong)
        if not len(rows):
            return
        self.rows |= wrong
        values = ""
        if cells is not None:
            different = list(dict.fromkeys(map(shown, cells.iloc[rows[:1000]].tolist())))
            values = " = " + ", ".join(different[:MOST_VALUES]) + (", …" if len(different) > MOST_VALUES else "")
        self.found.append(f"{told}{values} in {rows_of(rows)}: expected {expected}")

    def raise_any(self) -> None:
        if self.found:
            raise InputError(f"{'; '.join(self.found)} (rows count from 0)")


def rows_of(rows: np.ndarray) -> str:
    listed = ", ".join(map(str, rows[:MOST_ROWS].tolist()))
    more = f" and {len(rows) - MOST_ROWS} more" if len(rows) > MOST_ROWS else ""
    return f"row{'s' if len(rows) > 1 else ''} {listed}{more}"


def read_table(given: Table, name: str, sep: str | None, encoding: str) -> pd.DataFrame:
    """The table, or that in the file; cells of CSV files are text, and none of them is taken for missing."""
    if isinstance(given, pd.DataFrame):
        if sep is not None:
            raise InputError(f"sep = {shown(sep)}: expected None beside a table, which is read already")
        return given
    if not isinstance(given, (str, os.PathLike)):
        raise InputError(f"{name} is a {type(given).__name__}: expected a pandas.DataFrame or the path of a file")
    path = existing_file(given, name)
    ending = next((end for end in (s.lower() for s in reversed(path.suffixes)) if end != ".gz"), "")
    if ending not in ENDINGS:
        others = "; pandas reads other files into a table"
        raise InputError(f"{name} = {path}: expected a file that ends in {', '.join(ENDINGS)}, also with .gz{others}")
    try:
        with open_text(path, encoding) as file:
            if ending not in SEPARATORS:
                return pd.json_normalize(_records("".join(file)))
            header, *rows = [*csv_rows(file, REMEDY, sep or SEPARATORS[ending])] or [[]]
            return pd.DataFrame(rows, columns=header, dtype=object)  # a name that stands there twice is kept twice
    except Exception as error:  # the libraries raise almost anything
        hint = f"; give its encoding, as in encoding='utf-16' or 'cp1252' (now {encoding!r})"
        told = reason(error) + (hint if isinstance(error, UnicodeError) else "")
        raise InputError(f"{name} = {path}: can't be read ({told})") from None


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[Iterable[str]]:
    """The lines of the file; its content says whether it is gzipped."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with (gzip.open if packed else open)(path, "rt", encoding=encoding, newline="") as lines:
        yield lines


def json_of(text: str) -> Any:
    """The value of a JSON text; ValueError if an object has a key twice."""
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"an object has the key {next(key for key in keys if keys.count(key) > 1)!r} twice")
    return found


def json_lines(lines: Iterable[str]) -> list[Any]:
    """The values of JSON texts, one a line."""
    records = []
    for number, line in enumerate(lines):
        try:
            records += [json_of(line)] if line.strip() else []
        except ValueError as error:
            raise ValueError(f"line {number + 1}: {error}") from None
    return records


def _records(text: str) -> list[dict[str, Any]]:
    """Objects of JSON, in a list or one a line, whatever the file is called; ValueError if there is anything else."""
    try:
        records = json_of(text)
        records = [records] if isinstance(records, dict) else records
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise
        records = json_lines(text.split("\n"))
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise ValueError("expected a list of JSON objects, or one object a line")
    for number, record in enumerate(records):
        names = [*_dotted(record)]
        if len({*names}) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"the object in row {number} has {twice!r} twice, as a key with a dot and in an object")
    return records


def _dotted(record: dict[str, Any], before: str = "") -> Iterator[str]:
    """The columns that an object becomes, with a dot before keys of inner objects."""
    for key, value in record.items():
        if isinstance(value, dict) and value:
            yield from _dotted(value, f"{before}{key}.")
        else:
            yield before + key


def checked_columns(columns: Mapping[str, str | None] | None) -> Mapping[str, str | None]:
    """The argument `columns`, none if it is None; InputError if it is not a mapping."""
    columns = {} if columns is None else columns
    if not isinstance(columns, Mapping) or not all(isinstance(label, Hashable) for label in columns.values()):
        raise InputError(f"columns = {shown(columns)}: expected a mapping, as in {{'said': 'answer'}}")
    return columns


def with_columns(
    table: pd.DataFrame,
    name: str,
    columns: Mapping[str, str | None],
    needed: Sequence[str],
    optional: Sequence[str] = (),
) -> pd.DataFrame:
    """The needed columns, and the optional ones that are there, under their own names; InputError names all that lack.

    A run that is None is 0, a step that is None is the number of the row.
    """
    if unknown := [one for one in columns if one not in {*needed, *optional}]:
        raise InputError(
            f"columns: {', '.join(map(repr, unknown))}: expected some of {', '.join((*needed, *optional))}"
        )
    if table.empty:
        raise InputError(f"{name} is empty: expected a row for each interaction")
    sources = {one: columns.get(one, one) for one in (*needed, *optional)}
    counted = {
        one: np.zeros(len(table), dtype=int) if one == "run" else np.arange(len(table)) for one in ("run", "step")
    }
    found = {one: column for one, column in counted.items() if one in sources and sources[one] is None}
    here = {*table.columns} - {*columns.values()}
    sources = {
        one: source
        for one, source in sources.items()
        if one not in found and (one in (*needed, *columns) or source in here)
    }
    wrong, lacking = [], []
    for source in dict.fromkeys(sources.values()):
        names = [one for one in sources if sources[one] == source]
        times = sum(label == source for label in table.columns)
        if times > 1:
            wrong.append(f"{name} has the column {source} {times} times")
        if not times:
            lacking.append(f"{source}" + (f" (for {' and '.join(names)})" if names != [source] else ""))
        elif len(names) > 1:
            wrong.append(f"columns: {' and '.join(names)} are both {shown(source)}")
        if times == 1:
            found |= {one: table[source].reset_index(drop=True) for one in names}  # an array's type pandas would guess
    if lacking:
        wrong.append(f"{name} lacks the column{'s' if len(lacking) > 1 else ''} {', '.join(lacking)}")
    if lacking == ["heard"]:
        wrong[-1] += " (if each row is a message, meanfield.datasets.interactions makes the table of them)"
    if wrong:
        raise InputError(f"{'; '.join(wrong)}; expected {', '.join(needed)}: {_how_to_name(table)}")
    return pd.DataFrame({one: found[one] for one in (*needed, *optional) if one in found})


def _how_to_name(table: pd.DataFrame) -> str:
    listed = ", ".join(shown(label) for label in table.columns[:20])
    return (
        f"there are {listed}; columns={{'said': 'answer'}} names the columns, and None stands for "
        "one run, or for steps in the order of rows"
    )


class Names(NamedTuple):
    """Names or whole numbers of runs or agents."""

    numbers: dict[str, int]  # by text; of names in alphabetical order, else the number itself
    named: bool

    def find(self, told: str, one: Any, strangers: bool = False) -> int:
        """The number of one name of an argument; InputError if the table has no such name.

        `strangers` may have numbers that are not in the table, if its names are numbers.
        """
        text = text_of(one)
        if text in self.numbers:
            return self.numbers[text]
        if strangers and not self.named and text is not None and WHOLE.fullmatch(text):
            return int(float(text))
        listed = ", ".join([*self.numbers][:MOST_VALUES])
        raise InputError(f"{told} = {shown(one)}: expected one of the events, such as {listed}")

    @property
    def texts(self) -> np.ndarray:
        """Names by number."""
        return np.array(list(self.numbers), dtype=object)


def by_run(name: str, given: Any, runs: Names, default: Any) -> dict[int, Any]:
    """The value of each run, of one for all runs or a mapping."""
    numbers = [*runs.numbers.values()]
    if not isinstance(given, Mapping):
        return dict.fromkeys(numbers, given)
    found: dict[int, Any] = {}
    for run, value in given.items():
        if (number := runs.find(f"{name}: run", run)) in found:
            raise InputError(f"{name}: run = {shown(run)}: expected each run once")
        found[number] = value
    return {run: found.get(run, default) for run in numbers}


def text_of(cell: Any) -> str | None:
    """A name, or a whole number as text; None if it is neither."""
    if isinstance(cell, str):
        return cell if cell and cell == cell.strip() and not UNFIT.search(cell) else None
    whole = is_number(cell) and int(cell) == cell and abs(cell) < LARGEST
    return str(int(cell)) if whole else None


def names_of(complaints: Complaints, table: pd.DataFrame, *columns: str) -> tuple[Names, list[np.ndarray]]:
    """Names of runs or agents in these columns, one numbering for all of them, and the columns in these numbers."""
    found: dict[str, None] = {}
    cells = []
    for column in columns:
        codes, values = _distinct(table[column])
        texts = [text_of(value) for value in values]
        wrong = np.array([text is None for text in texts])[codes]
        complaints.add(wrong, column, "a name without blanks at its ends, or a whole number", table[column])
        found |= dict.fromkeys(text for text in texts if text is not None)
        cells.append((codes, texts))
    named = not all(WHOLE.fullmatch(text) for text in found)
    numbers = {text: k if named else int(float(text)) for k, text in enumerate(sorted(found))}
    different: dict[int, str] = {}
    for text, number in numbers.items():
        if (other := different.setdefault(number, text)) != text:
            complaints.found.append(f"{columns[0]} = {other!r} and {text!r}: expected one text for each number")
    place = {None: 0} | numbers  # None after a complaint
    return Names(numbers, named), [np.array([place[text] for text in texts])[codes] for codes, texts in cells]


def numbers_of(complaints: Complaints, table: pd.DataFrame, column: str, decimal: str) -> np.ndarray:
    """Numbers that order rows."""
    if decimal not in (".", ","):
        raise InputError(f"decimal = {shown(decimal)}: expected '.' or ','")

    def number(cell: Any) -> float:
        if isinstance(cell, str):
            text = cell.strip().translate(str.maketrans({".": "?"} | {decimal: "."}))  # no other point
            return float(text) if NUMBER.fullmatch(text) else math.nan
        return float(cell) if is_number(cell) else math.nan

    codes, values = _distinct(table[column])
    found = np.array([number(value) for value in values])[codes]
    wrong = ~(np.abs(found) < LARGEST)
    complaints.add(
        wrong,
        column,
        f"a number, with the decimal mark {decimal!r} (or decimal={'.,'.replace(decimal, '')!r}); "
        f"or columns={{{column!r}: None}} for the order of rows",
        table[column],
    )
    return found


def codes_of(cells: pd.Series, words: Mapping[str, int]) -> np.ndarray:
    """The code of each text in a column, MISSING for no cell, UNKNOWN for another text or no text."""
    codes, values = _distinct(cells)
    found = [
        MISSING if is_missing(one) else words.get(one, UNKNOWN) if isinstance(one, str) else UNKNOWN for one in values
    ]
    return np.array(found)[codes]


def texts_in(cells: pd.Series) -> list[str]:
    """The different texts in a column."""
    return [value for value in _distinct(cells)[1] if isinstance(value, str)]


def is_missing(cell: Any) -> bool:
    """Whether it is None, NaN or the like."""
    return pd.api.types.is_scalar(cell) and bool(pd.isna(cell))


def _distinct(cells: pd.Series) -> tuple[np.ndarray, list[Any]]:
    """The place of each cell among different ones; pandas would also take 1, True and 1.0 for one."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(object)
    if pd.api.types.infer_dtype(cells, skipna=False) in ("string", "integer", "floating"):
        codes, values = pd.factorize(cells, use_na_sentinel=False)
        return codes, values.tolist()
    return np.arange(len(cells)), cells.tolist()
