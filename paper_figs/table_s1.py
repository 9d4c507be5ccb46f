"""[004] Table S1: published and computed leading eigenvalues at the candidates, the states of consensus on one word.

python -m paper_figs.table_s1 stability.nc table_s1.csv
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import xarray as xr
from rich.console import Console
from rich.table import Table

import meanfield
from meanfield import InputError
from meanfield.toolbox import whole_file
from paper_figs._published import equals_printed, table_s1
from paper_figs._script import arguments


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
    computed = table.to_dataframe().query("row == 'candidate'")
    columns = {"eigenvalue": "computed"}
    keys = ["model", "pair", "word"]
    merged = table_s1().merge(
        computed[[*keys, "eigenvalue", "residual", "is_fixed_point"]].rename(columns=columns), on=keys
    )
    if merged.empty:
        raise InputError("table has no policy of [004] Table S1: expected models gpt-4o, llama31_70B, phi_4 or QWQ_32B")
    agrees = [equals_printed(*row) for row in zip(merged["computed"], merged["corrected"], strict=True)]
    return merged.assign(agrees=agrees)


def render(comparison: pd.DataFrame) -> Table:
    """The comparison as a `rich` table, with the number of agreeing entries in its caption."""
    report = Table(caption=f"{comparison['agrees'].sum()} of {len(comparison)} entries equal to the digits printed")
    for column in ("model", "pair", "word"):
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


if __name__ == "__main__":
    with arguments("paper_figs.table_s1 STABILITY.nc TABLE.csv") as (stability, table):
        draw(meanfield.load(stability), table)
