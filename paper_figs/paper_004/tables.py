"""[004] Tables S1 and S2: leading eigenvalues, printed and computed, and the questions about the prompt."""

from __future__ import annotations

import pandas as pd
import xarray as xr

import meanfield
from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs.table_s1 import published_against_computed


def eigenvalues(study: Study) -> xr.Dataset:
    """The stability table of all policies at hand."""
    return study.kept("stability_table", lambda: meanfield.stability_table(study.policies), study.policies)


def against_print(table: xr.Dataset) -> pd.DataFrame:
    """A row for each pair and word, with the printed and the computed eigenvalue of each model side by side."""
    rows = published_against_computed(table)
    rows["word"] = rows["word"] + rows["strong"].map({1: " (strong)", 0: ""})
    note = rows["reason"].where(rows["reason"] != "", rows["agrees"].map({True: "", False: "differs"}))
    note = note.where(rows["is_fixed_point"], note.str.cat(["no fixed point"] * len(rows), sep="; ").str.strip("; "))
    rows = rows.assign(computed=rows["computed"].map("{:.6g}".format), note=note)
    wide = rows.pivot(index=["pair", "word"], columns="model", values=["printed", "computed", "note"])
    return wide.swaplevel(axis=1).sort_index(axis=1, level=0, sort_remaining=False)


ITEMS = [
    Item(
        "004",
        "Table S1",
        "Leading eigenvalues at the candidates",
        "The first eigenvalue at consensus on each word for four models, to three significant digits; the strong word "
        "in bold.",
        eigenvalues,
        against_print,
        "Printed and computed values side by side; a note marks misprints and candidates that are no fixed points.",
    )
]
