"""The stability table in files for other programs: CSV and LaTeX."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import xarray as xr

from meanfield._tables.stability_report import other_criteria, share_text
from meanfield.toolbox._files import whole_file

COLUMNS = (
    "model",
    "pair",
    "row",
    "word",
    "word_share",
    "eigenvalue",
    "eigenvalue_error",
    "residual",
    "is_fixed_point",
    "stable",
    "strong",
)
# What the table has only where other criteria than the trajectory were asked for
FURTHER_COLUMNS = ("strong_by_basin", "basin", "strong_by_law", "kappa", "disagreement")
LATEX = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)


def write_stability_csv(table: xr.Dataset, path: str | os.PathLike[str]) -> Path:
    """Write a stability table as CSV, one row an entry, columns model, pair, row, word, …, strong; returns the path.

    Further columns follow where the table has further criteria.

    Raises
    ------
    InputError
        If `path` can't be written.
    """
    columns = [*COLUMNS, *(name for name in FURTHER_COLUMNS if name in table)]
    with whole_file(path) as temporary:
        table[columns].to_dataframe().to_csv(temporary, index=False)
    return Path(path)


def write_stability_latex(table: xr.Dataset, path: str | os.PathLike[str]) -> Path:
    """Write a stability table as a LaTeX tabular for the package booktabs; returns the path.

    Raises
    ------
    InputError
        If `path` can't be written.
    """
    lines = [
        r"\begin{tabular}{llrrrl}",
        r"\toprule",
        r"& word & share & $\lambda$ & residual & \\",
    ]
    for _, rows in table.to_dataframe().groupby("policy"):
        lines += [r"\midrule", *_latex_rows(rows)]
    lines += [r"\bottomrule", r"\end{tabular}"]
    with whole_file(path) as temporary:
        Path(temporary).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Path(path)


def _latex_rows(rows: pd.DataFrame) -> list[str]:
    first = rows.iloc[0]
    heading = f"{first['model']} {{{first['pair'].replace('/', ', ')}}}".strip()
    lines = [rf"\multicolumn{{5}}{{l}}{{{_escaped(heading)}}} & strong: {_escaped(first['strong'])} \\"]
    for label, share, word in other_criteria(rows):
        note = "disagrees" if word not in ("", first["strong"]) else ""
        lines.append(rf"{_escaped(label)} & {_escaped(word)} & {_number(share)} & & & {note} \\")
    for row in rows.itertuples():
        kind = "candidate" if row.row == "candidate" else f"{row.kind} point"
        note = row.stability if row.is_fixed_point else "not fixed"
        texts = (share_text(row.word_share), f"{row.eigenvalue:.3g}", f"{row.residual:.0e}")
        numbers = " & ".join(_number(text) for text in texts)
        lines.append(rf"{kind} & {_escaped(row.word)} & {numbers} & {note} \\")
    return lines


def _number(text: str) -> str:
    r"""`text` in math mode, 3e-06 as 3 \cdot 10^{-6}."""
    if not text:
        return ""
    if float(text.removeprefix("1-")) == 0:
        return "$0$"
    mantissa, e, exponent = text.partition("e")
    return f"${mantissa} \\cdot 10^{{{int(exponent)}}}$" if e else f"${mantissa}$"


def _escaped(text: str) -> str:
    return text.translate(LATEX).replace("κ", r"$\kappa$")
