"""Tables in CSV files, within limits."""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from meanfield.toolbox._errors import InputError, reason
from meanfield.toolbox._files import existing_file

LARGEST_TABLE = 2**24  # bytes, unpacked
MOST_COLUMNS = 1000
MOST_LINES = 20  # in a message
SEPARATORS = ";\t|,"  # of files that bear the name of CSV
REMEDY = "expected commas; pandas.read_csv(path, sep={}) reads it, with decimal=',' if need be"
GZIP = b"\x1f\x8b"


def read_csv(path: str | os.PathLike[str], name: str = "path", **options: Any) -> pd.DataFrame:
    """Read a table from a CSV file with a header, plain or gzipped, in UTF-8.

    `name` is the name of the argument, for messages; `options` go to `pandas.read_csv`, such as `dtype`.
    InputError if there is no such file, it is not CSV, its rows don't have as many fields as its header, or it has more
    than 16 MiB unpacked or 1,000 columns.
    """
    path = existing_file(path, name)
    try:
        text = _content(path).decode("utf-8-sig")
        for row in csv_rows(io.StringIO(text, newline=""), REMEDY):  # pandas would fill or shift fields
            if len(row) > MOST_COLUMNS:
                raise ValueError(f"it has {len(row)} columns: expected at most {MOST_COLUMNS}")
        return pd.read_csv(io.StringIO(text), **options)
    except (OSError, ValueError, EOFError, zlib.error, csv.Error) as error:
        raise InputError(
            f"{name} = {path}: expected a CSV file with a header, and it can't be read ({reason(error)})"
        ) from None


def _content(path: Path) -> bytes:
    """The content, unpacked no further than the limit."""
    with path.open("rb") as file:
        packed = file.read(len(GZIP)) == GZIP
        file.seek(0)
        content = (gzip.GzipFile(fileobj=file) if packed else file).read(LARGEST_TABLE + 1)
    if len(content) > LARGEST_TABLE:
        raise ValueError(f"it has more than {LARGEST_TABLE} bytes")
    return content


def csv_rows(lines: Iterable[str], remedy: str, sep: str = ",") -> Iterator[list[str]]:
    """The header and the rows of a CSV text; ValueError at the end that names lines which lack or exceed its fields.

    `remedy` tells what to do where other signs stand between the fields, as a template for these.
    """
    reader = csv.reader(lines, delimiter=sep, strict=True)
    header, uneven = [], []
    for row in filter(None, reader):
        if not header and len(row) == 1 and (other := next((sign for sign in SEPARATORS if sign in row[0]), None)):
            raise ValueError(f"its header has {other!r} between fields: {remedy.format(repr(other))}")
        header = header or row
        if len(row) != len(header):
            uneven.append(reader.line_num)
        yield row
    if uneven:
        listed = ", ".join(map(str, uneven[:MOST_LINES])) + (", …" if len(uneven) > MOST_LINES else "")
        raise ValueError(f"line{'s' if len(uneven) > 1 else ''} {listed}: expected the header's {len(header)} fields")


def check_columns(name: str, table: object, columns: Sequence[str]) -> None:
    """InputError unless the argument or file `name` is a table with these columns."""
    if not isinstance(table, pd.DataFrame):
        its = ", as are its choice_counts" if hasattr(table, "choice_counts") else ""
        raise InputError(f"{name} is a {type(table).__name__}: expected a pandas.DataFrame{its}")
    if missing := [column for column in columns if column not in table.columns]:
        raise InputError(f"{name} lacks the column {', '.join(missing)}; expected {', '.join(columns)}")


def column_numbers(column: Any) -> np.ndarray:
    """The cells of a column as float64; NaN for text and for integers beyond all floats."""
    try:
        return np.asarray(pd.to_numeric(pd.Series(column), errors="coerce"), dtype=np.float64)
    except OverflowError:  # one cell of hundreds of digits
        return np.array([_number(cell) for cell in column])


def column_whole_numbers(table: pd.DataFrame, name: str, least: int = 0, where: str = "") -> np.ndarray:
    """The column of whole numbers of at least `least`; InputError, which begins with `where`, on any other cell."""
    values = column_numbers(table[name])
    wrong = ~(np.isfinite(values) & (values >= least) & (values == np.round(values)))
    if wrong.any():
        row = int(wrong.argmax())
        told = f"{where}{name} = {table[name].iloc[row]} in row {row}"
        raise InputError(f"{told}: expected whole numbers of at least {least}")
    return values.astype(np.int64)


def number_hint(cell: Any) -> str:
    """The end of a message about a cell that is not a number, where people write a number so."""
    text = str(cell).strip()
    if text.endswith("%"):
        return ", as 0.5 for 50 %"
    if text.count(",") == 1 and not np.isnan(_number(text.replace(",", "."))):
        return f" with a point, {text.replace(',', '.')} (pandas.read_csv(path, decimal=',') reads commas)"
    return ""


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return np.nan
