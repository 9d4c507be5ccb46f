"""The stability table in files for other programs: CSV and LaTeX."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import xarray as xr

from meanfield._tables.latex import escaped, fixed, latex_table, power_of_ten
from meanfield._tables.stability_report import differs, other_criteria, share_text
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._expect import expect
from meanfield.toolbox._files import path_of, whole_file

COLUMNS = "model pair row word word_share eigenvalue eigenvalue_error residual is_fixed_point stable strong"
# What the table has only where other criteria than the trajectory were asked for
FURTHER_COLUMNS = ("strong_by_basin", "basin", "strong_by_law", "kappa", "disagreement")
CAPTION = (
    r"First eigenvalues $\lambda$ of the reduced Jacobian at the trivial candidates of the mean-field dynamics and at "
    r"its true fixed points, per unit of time, half a round; residual: $1 - q$ of a candidate. Bold: the strong word."
)


def stability_frame(table: xr.Dataset) -> pd.DataFrame:
    """The columns of a stability table for CSV, one row for each entry."""
    table = expect(table, "stability_table", "table")
    return table[[*COLUMNS.split(), *(name for name in FURTHER_COLUMNS if name in table)]].to_dataframe()


def write_stability(table: xr.Dataset, path: str | os.PathLike[str]) -> Path:
    r"""Write a stability table as CSV or for LaTeX, as the ending of `path` says, .csv or .tex, and return the path.

    CSV has one row for each entry, with the columns model, pair, row, word, …, strong, then further criteria
    if the table has them. LaTeX has a caption and the label tab:stability, and needs the packages booktabs and, if it
    is longer than a page, longtable. As in [004] Table S1, eigenvalues have three decimals there and the strong word
    is bold.

    Raises
    ------
    InputError
        If `path` ends otherwise or can't be written.

    See Also
    --------
    stability_report : as printed text

    Examples
    --------
    >>> import tempfile
    >>> table = meanfield.stability_table(meanfield.datasets.smollm2().sel(pair="his/her"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = meanfield.write_stability(table, f"{folder}/stability.csv")
    ...     pd.read_csv(path)[["pair", "row", "word", "eigenvalue", "strong"]].round(3)
    ...     rows = meanfield.write_stability(table, f"{folder}/stability.tex").read_text().splitlines()
          pair          row word  eigenvalue             strong
    0  his/her    candidate  his      -0.095  mostly his (0.53)
    1  his/her    candidate  her      -0.044  mostly his (0.53)
    2  his/her  fixed_point  his      -0.183  mostly his (0.53)
    >>> print(*(row for row in rows if row.startswith("candidate")), sep="\n")
    candidate & his & $0.8255$ & $-0.095$ & $2 \cdot 10^{-1}$ & not fixed \\
    candidate & her & $0.8420$ & $-0.044$ & $2 \cdot 10^{-1}$ & not fixed \\
    """
    form = path_of(path).suffix.lower()
    if form not in FORMS:
        raise InputError(f"path = {path}: expected a name that ends with {' or '.join(FORMS)}")
    return write_as(form, table, path)


def write_as(form: str, table: xr.Dataset, path: str | os.PathLike[str]) -> Path:
    """Write a stability table in a form, whatever the path ends with."""
    with whole_file(path) as temporary:
        temporary.write_text(FORMS[form](table), encoding="utf-8", newline="\n")
    return Path(path)


def stability_csv(table: xr.Dataset) -> str:
    """The text of a CSV file."""
    return stability_frame(table).to_csv(index=False, lineterminator="\n")


def stability_latex(table: xr.Dataset) -> str:
    """The text of a table for LaTeX."""
    frame = expect(table, "stability_table", "table").to_dataframe()
    policies = [_latex_rows(rows) for _, rows in frame.groupby("policy")]
    body = [line for lines in policies for line in (r"\midrule", *lines)][1:]
    return latex_table("llrrrl", r"& word & share & $\lambda$ & residual & \\", body, CAPTION, "stability")


def _latex_rows(rows: pd.DataFrame) -> list[str]:
    first = rows.iloc[0]
    heading = f"{first['model']} {{{first['pair'].replace('/', ', ')}}}".strip()
    lines = [rf"\multicolumn{{5}}{{l}}{{{escaped(heading)}}} & strong: {escaped(first['strong'])} \\"]
    for label, share, word in other_criteria(rows):
        note = "disagrees" if differs(rows, word) else ""
        lines.append(rf"{escaped(label)} & {escaped(word)} & {power_of_ten(share)} & & & {note} \\")
    for row in rows.itertuples():
        kind = "candidate" if row.row == "candidate" else f"{row.kind} point"
        word = rf"\textbf{{{escaped(row.word)}}}" if row.word == row.strong else escaped(row.word)
        share, residual = power_of_ten(share_text(row.word_share)), power_of_ten(f"{row.residual:.0e}")
        lines.append(rf"{kind} & {word} & {share} & {fixed(row.eigenvalue, 3)} & {residual} & {row.stability} \\")
    return lines


FORMS = {".csv": stability_csv, ".tex": stability_latex}
