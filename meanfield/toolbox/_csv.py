"""Tables in CSV files, within limits."""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from meanfield.toolbox._errors import InputError, reason
from meanfield.toolbox._files import existing_file

LARGEST_TABLE = 2**24  # bytes, unpacked
MOST_COLUMNS = 1000
GZIP = b"\x1f\x8b"


def read_csv(path: str | os.PathLike[str], name: str = "path", **options: Any) -> pd.DataFrame:
    """Read a table from a CSV file with a header, plain or gzipped, in UTF-8.

    `name` is the name of the argument, for messages; `options` are those of `pandas.read_csv`, such as `dtype`.
    InputError if there is no such file, it is not CSV, its rows don't have as many fields as its header, or it has more
    than 16 MiB unpacked or 1,000 columns.
    """
    path = existing_file(path, name)
    try:
        text = _content(path).decode("utf-8-sig")
        _check_rectangular(text)
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


def _check_rectangular(text: str) -> None:
    """Missing fields would silently become missing numbers, and additional ones an index."""
    records = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] = []
    for record in records:
        header = header or record
        if record and len(record) != len(header):
            raise ValueError(f"line {records.line_num} has {len(record)} fields, the header {len(header)}")
        if len(record) > MOST_COLUMNS:
            raise ValueError(f"it has {len(record)} columns: expected at most {MOST_COLUMNS}")


def column_numbers(column: Any) -> np.ndarray:
    """The cells of a column as float64; NaN for text and for integers beyond all floats."""
    try:
        return np.asarray(pd.to_numeric(pd.Series(column), errors="coerce"), dtype=np.float64)
    except OverflowError:  # one cell of hundreds of digits
        return np.array([_number(cell) for cell in column])


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return np.nan
