"""Numbers printed in the papers, and their corrections."""

from __future__ import annotations

from importlib.resources import files

import pandas as pd


def table_s1() -> pd.DataFrame:
    """[004] Table S1: model, pair, word, `printed` (as in the paper), `strong` (1 where bold), `corrected`, `reason`.

    `corrected` differs from `printed` for misprints and for entries that the exact value contradicts; `reason` says
    why, and is '' elsewhere.
    """
    keys = ["model", "pair", "word"]
    entries = _read("table_s1.csv")
    errata = _read("table_s1_errata.csv").drop(columns="printed")
    table = entries.merge(errata, on=keys, how="left")
    return table.assign(corrected=table["corrected"].fillna(table["printed"]), reason=table["reason"].fillna(""))


def equals_printed(value: float, printed: str) -> bool:
    """Whether `value` rounds to the digits of `printed`; a printed rounding error (…e-16) stands for zero."""
    if "e" in printed:
        return abs(value) < 1e-12
    decimals = len(printed.partition(".")[2])
    return abs(value - float(printed)) <= 0.5000001 * 10.0**-decimals


def _read(name: str) -> pd.DataFrame:
    with (files("paper_figs") / "published" / name).open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype={"printed": str, "corrected": str})
