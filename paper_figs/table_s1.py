"""[004] Table S1: published and computed leading eigenvalues at the candidates, the states of consensus on one word."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pandas as pd
import xarray as xr
from rich.console import Console
from rich.table import Table

from meanfield import InputError
from meanfield.toolbox import whole_file

KEYS = ["model", "pair", "word"]


def table_s1() -> pd.DataFrame:
    """[004] Table S1: model, pair, word, `printed` (as in the paper), `strong` (1 where bold), `corrected`, `reason`.

    `corrected` differs from `printed` for misprints and for entries that the exact value contradicts; `reason` says
    why, and is '' elsewhere.
    """
    errata = _read("table_s1_errata.csv").drop(columns="printed")
    table = _read("table_s1.csv").merge(errata, on=KEYS, how="left")
    return table.assign(corrected=table["corrected"].fillna(table["printed"]), reason=table["reason"].fillna(""))


def _read(name: str) -> pd.DataFrame:
    with (files("paper_figs") / "published" / name).open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype={"printed": str, "corrected": str})


def equals_printed(value: float, printed: str) -> bool:
    """Whether `value` rounds to the digits of `printed`; a printed rounding error (…e-16) stands for zero."""
    if "e" in printed:
        return abs(value) < 1e-12
    decimals = len(printed.partition(".")[2])
    return abs(value - float(printed)) <= 0.5000001 * 10.0**-decimals


def published_against_computed(table: xr.Dataset) -> pd.DataFrame:
    """Candidate rows of a stability table beside [004] Table S1; a candidate is a state of consensus on one word.

    Returns
    -------
    One row per entry of Table S1 whose model, pair and word are in `table`: `printed`, `corrected`, `computed`,
    `agrees` (`computed` rounds to `corrected`), `residual`, `is_fixed_point`, `reason`.

    Raises
    ------
    InputError
        If `table` has none of the published policies.
    """
    computed = table.to_dataframe().query("row == 'candidate'").rename(columns={"eigenvalue": "computed"})
    merged = table_s1().merge(computed[[*KEYS, "computed", "residual", "is_fixed_point"]], on=KEYS)
    if merged.empty:
        raise InputError("table has no policy of [004] Table S1: expected models gpt-4o, llama31_70B, phi_4 or QWQ_32B")
    agrees = [equals_printed(*row) for row in zip(merged["computed"], merged["corrected"], strict=True)]
    return merged.assign(agrees=agrees)


def render(comparison: pd.DataFrame) -> Table:
    """The comparison as a `rich` table, with the number of agreeing entries in its caption."""
    report = Table(caption=f"{comparison['agrees'].sum()} of {len(comparison)} entries equal to the digits printed")
    for column in KEYS:
        report.add_column(column)
    for column in ("printed", "computed", "residual"):
        report.add_column(column, justify="right")
    report.add_column("")
    for row in comparison.itertuples():
        notes = [row.reason] if row.reason else []
        notes += [] if row.agrees else ["differs"]
        notes += [] if row.is_fixed_point else ["not a fixed point"]
        cells = (row.model, row.pair, row.word, row.printed, f"{row.computed:.3g}", f"{row.residual:.1e}")
        report.add_row(*cells, "; ".join(notes))
    return report


def draw(table: xr.Dataset, path: str | Path) -> Path:
    """Write the comparison as CSV and print it; returns the path."""
    comparison = published_against_computed(table)
    with whole_file(path) as temporary:
        comparison.to_csv(temporary, index=False, lineterminator="\n")
    Console().print(render(comparison))
    return Path(path)
