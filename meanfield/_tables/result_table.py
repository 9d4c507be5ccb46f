"""Results as tables, one row for each point of some dims, for files of other programs and for the terminal."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from meanfield._tables.latex import escaped, fixed, latex_table, power_of_ten
from meanfield.toolbox._labels import has_names

LONG_DIMS = ("state", "run", "time", "component", "point", "mode")
NAMES = ("model", "pair")
DECIMALS = 4
SMALL = 10.0**-DECIMALS
SHOWN_ROWS, UPRIGHT_ROWS = 20, 6
UNKNOWN = "–"
LONG_TEXT = 40  # characters, more than a column of a terminal has


def result_table(result: xr.Dataset, rows: Sequence[str]) -> pd.DataFrame:
    """A row for each point of those dims `rows` that the result has.

    A variable over a further dim becomes a column for each of its labels, such as `word_share_0` and `word_share_1`;
    variables over states, runs or times are left out. A variable without any of the dims is the same in every row.
    """
    rows = [dim for dim in rows if dim in result.dims]
    sizes = {dim: result.sizes[dim] for dim in rows}
    first = [name for name in (*NAMES, *rows) if name in result.coords]
    columns = {}
    for name in dict.fromkeys([*first, *result.coords, *result.data_vars]):
        others = [str(dim) for dim in result[name].dims if dim not in rows]
        if name == "word_number" or (name == "word_label" and has_names(result)):
            continue  # the columns are labelled by them
        if name in others or any(dim in LONG_DIMS for dim in others):
            continue
        labels = [result[dim].values if dim in result.coords else range(result.sizes[dim]) for dim in others]
        for place in itertools.product(*(range(result.sizes[dim]) for dim in others)):
            one = result[name].variable.isel(dict(zip(others, place, strict=True)))
            suffix = [str(of[i]) for of, i in zip(labels, place, strict=True)]
            columns["_".join([str(name), *suffix])] = one.set_dims(sizes).values.ravel()
    return pd.DataFrame(columns)


def table_text(table: pd.DataFrame, form: str, caption: str = "", label: str = "") -> str:
    """The table in the form csv, json or tex; JSON is a list of objects, with null for NaN."""
    if form == "csv":
        return table.to_csv(index=False, lineterminator="\n")
    if form == "json":
        rows = [{name: _plain(cell) for name, cell in row.items()} for row in table.to_dict("records")]
        return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"
    same, table = _split(table) if len(table) > 1 else ({}, table)
    alignment = "".join("r" if pd.api.types.is_numeric_dtype(kind) else "l" for kind in table.dtypes)
    header = " & ".join(_spaced(name) for name in table) + r" \\"
    body = [" & ".join(row) + r" \\" for row in zip(*(_latex_column(table[name]) for name in table), strict=True)]
    told = [f"{_spaced(name)}: {_latex_column(pd.Series([cell]))[0]}" for name, cell in same.items()]
    return latex_table(alignment, header, body, "; ".join([escaped(caption.removesuffix(".")), *told]), label)


def shown_table(table: pd.DataFrame, width: int, rows: Sequence[str] = (), first: Sequence[str] = ()) -> Group:
    """The table for a terminal: constant columns first, then the first rows and as many columns as fit.

    A few wide rows are shown upright, and texts that differ between rows below. Behind names and `rows` stand the
    columns whose names begin as one of `first`. The words of each pair are left out beside the pair, and rows without
    any other column.
    """
    names = [str(name) for name in table if not str(name).startswith("word_label_") or "pair" not in table]
    names.sort(key=lambda name: 0 if name in (*NAMES, *rows) else 1 if name.startswith(tuple(first)) else 2)
    table = table.loc[:, names]
    same, varying = _split(table)
    notes = [name for name in varying if any(isinstance(cell, str) and len(cell) > LONG_TEXT for cell in varying[name])]
    below = [Text(line) for name in notes for line in _notes(name, varying)]
    varying = varying.drop(columns=notes)
    cells = {str(name): [_shown(cell) for cell in varying[name][:SHOWN_ROWS]] for name in varying}
    widths = np.cumsum([max(map(len, (name, *column))) + 3 for name, column in cells.items()])
    fitting = int((widths < width).sum())
    upright = fitting < len(cells) and len(varying) <= UPRIGHT_ROWS
    told = {name: [text] for name, cell in same.items() if (text := _shown(cell)) not in ("", UNKNOWN)}
    unknown = ", ".join(name for name, cell in same.items() if _shown(cell) == UNKNOWN)
    head = _upright(told | ({"not known": [unknown]} if unknown else {}))
    if set(cells) <= set(rows):
        return Group(head, *below)
    if upright:
        return Group(head, Text(), _upright(cells), *below)
    more = (len(varying) - SHOWN_ROWS, "rows"), (len(cells) - fitting, "columns")
    left_out = ", ".join(f"{number} more {what}" for number, what in more if number > 0)
    body = Table(box=SIMPLE_HEAD)
    for name in list(cells)[:fitting]:
        body.add_column(escape(name), justify="right" if pd.api.types.is_numeric_dtype(varying[name]) else "left")
    for row in list(zip(*cells.values(), strict=True)):
        body.add_row(*map(escape, row[:fitting]))
    return Group(head, body, *([Text(f"{left_out}: --out FILE")] if left_out else []), *below)


def _upright(columns: dict[str, list[str]]) -> Table:
    """A line for each column of a table."""
    lines = Table(box=None, show_header=False)
    for name, column in columns.items():
        lines.add_row(*map(escape, (name, *column)))
    return lines


def _notes(name: str, table: pd.DataFrame) -> list[str]:
    """A line for each text in a column, with the pairs or the rows that have it."""
    where = table["pair"] if "pair" in table else pd.Series(range(1, len(table) + 1), index=table.index)
    of = "" if "pair" in table else "row "
    told = table[name].groupby(table[name], sort=False)
    return [
        f"{name}, {of}{', '.join(map(str, dict.fromkeys(where[rows.index])))}: {text}" for text, rows in told if text
    ]


def _split(table: pd.DataFrame) -> tuple[dict[str, object], pd.DataFrame]:
    """The columns with one value in all rows, and the other columns."""
    same = [name for name in table if len(table[name].unique()) <= 1]
    return {str(name): table[name].iloc[0] for name in same if len(table)}, table.drop(columns=same)


def _plain(cell: object) -> object:
    """A cell for JSON, which has neither NaN nor infinity."""
    if isinstance(cell, float) and not math.isfinite(cell):
        return None if math.isnan(cell) else str(cell)
    return cell


def _shown(cell: object) -> str:
    if isinstance(cell, float):
        return UNKNOWN if math.isnan(cell) else f"{cell:.4g}"
    return "" if cell is None else str(cell)


def _latex_column(column: pd.Series) -> list[str]:
    """Fixed decimals, or powers of ten where they would be zeros."""
    if not pd.api.types.is_float_dtype(column):
        return ["" if cell is None else escaped(str(cell)) for cell in column]
    if 0 < column.abs().max() < SMALL:
        return ["--" if math.isnan(cell) else power_of_ten(f"{cell:.2e}") for cell in column]
    return [fixed(cell, DECIMALS) for cell in column]


def _spaced(name: object) -> str:
    return escaped(str(name).replace("_", " "))
