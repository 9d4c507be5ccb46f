"""The stability table as a printed report and in sentences."""

from __future__ import annotations

import pandas as pd
import xarray as xr
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from meanfield._tables.printed_table import PrintedTable
from meanfield.toolbox._expect import expect


def stability_report(table: xr.Dataset) -> Table:
    """A stability table (see `stability_table`) as a `rich` table, which prints as text of 80 columns.

    Each policy has a heading with its strong word. Further criteria follow where the table has them, marked if they
    disagree. λ has the three digits of [004] Table S1.

    See Also
    --------
    stability_table : makes the table
    write_stability : as a file

    Examples
    --------
    >>> table = meanfield.stability_table(meanfield.datasets.smollm2().sel(pair="his/her"))
    >>> print(meanfield.stability_report(table))
                        Candidates [π]^2H and true fixed points
                                           share         λ   residual
     ─────────────────────────────────────────────────────────────────────────────
      SmolLM2-135M-Instruct {his, her}
       → mostly his (0.53)
       candidate       his                0.8255   -0.0952      2e-01   not fixed
       candidate       her                0.8420    -0.044      2e-01   not fixed
       mixed point     his                0.5256    -0.183      ...     stable
           λ per unit of time, half a round; residual: 1 - q of a candidate
    """
    report = PrintedTable(
        title="Candidates \\[π]^2H and true fixed points",
        caption="λ per unit of time, half a round; residual: 1 - q of a candidate",
        box=SIMPLE_HEAD,
    )
    report.add_column("")  # a long name goes on in a second line, before numbers are cut
    for column, width in (("share", 7), ("λ", 7), ("residual", 8)):
        report.add_column(column, justify="right", no_wrap=True, min_width=width)
    report.add_column("", no_wrap=True, min_width=9)
    for _, rows in expect(table, "stability_table", "table").to_dataframe().groupby("policy"):
        strong = rows["strong"].iloc[0]
        report.add_section()
        heading = f"{rows['model'].iloc[0]} {{{rows['pair'].iloc[0].replace('/', ', ')}}}".strip()
        arrow = f"[bold]→ {escape(strong)}[/bold]"
        agreed = _agreed(rows)
        report.add_row(f"[bold]{escape(heading)}[/bold]", "", "", "", arrow if agreed else "")
        if not agreed:  # a longer name
            report.add_row(f" {arrow}")
        for label, share, word in other_criteria(rows):
            note = "[bold]disagrees[/bold]" if differs(rows, word) else ""
            report.add_row(f" {label:<16}{escape(word)}", share, "", "", note)
        for row in rows.itertuples():
            kind = "candidate" if row.row == "candidate" else f"{row.kind} point"
            numbers = (share_text(row.word_share), f"{row.eigenvalue:.3g}", f"{row.residual:.0e}")
            report.add_row(f" {kind:<16}{escape(row.word)}", *numbers, row.stability)
    return report


def other_criteria(rows: pd.DataFrame) -> list[tuple[str, str, str]]:
    """The results of further criteria for one policy, from its rows: label, share of the family, word."""
    first = rows.iloc[0]
    lines = []
    if "strong_by_basin" in rows:
        lines.append(("largest basin", f"{first['basin']:.4f}", first["strong_by_basin"]))
    if "strong_by_law" in rows:
        label = f"κ = {first['kappa']:.4f}" if first["strong_by_law"] else "no size law"
        lines.append((label, "", first["strong_by_law"]))
    return lines


def differs(rows: pd.DataFrame, word: str) -> bool:
    """Whether a further criterion, which finds this word, disagrees with the trajectory."""
    return bool(rows["disagreement"].iloc[0]) and word not in ("", rows["strong"].iloc[0])


def share_text(share: float) -> str:
    """Four digits, and the distance from 1 where they would hide it."""
    return f"{share:.4f}" if share <= 0.9999 or share == 1 else f"1-{1 - share:.0e}"


def describe_stability(table: xr.Dataset) -> list[str]:
    """One sentence for each policy: where a large population with empty memories ends, and why.

    Parameters
    ----------
    table
        As `stability_table` returns it.

    See Also
    --------
    stability_report : all numbers

    Examples
    --------
    >>> table = meanfield.stability_table(meanfield.datasets.smollm2().sel(pair="his/her"))
    >>> for part in meanfield.describe_stability(table)[0].split("; "):
    ...     print(part)
    SmolLM2-135M-Instruct {his, her}: a large population ends without a convention, mostly his (0.53)
    the only fixed point has 'his' at a share of 0.526.
    """
    frame = expect(table, "stability_table", "table").to_dataframe()
    return [_sentence(rows) for _, rows in frame.groupby("policy")]


def _sentence(rows: pd.DataFrame) -> str:
    words = "{" + rows["pair"].iloc[0].replace("/", ", ") + "}"
    strong = rows["strong"].iloc[0]
    outcome = f"settles on '{strong}'" if _agreed(rows) else f"ends without a convention, {strong}"
    return f"{rows['model'].iloc[0]} {words}: a large population {outcome}; {_landscape(rows)}{_dissent(rows)}."


def _agreed(rows: pd.DataFrame) -> bool:
    return rows["strong"].iloc[0] in rows["word"].values  # every word has a candidate


def _dissent(rows: pd.DataFrame) -> str:
    """The criteria that disagree with the trajectory."""
    others = [(label, word) for label, _, word in other_criteria(rows) if differs(rows, word)]
    return "".join(f"; the {label} is that of '{word}'" for label, word in others)


def _landscape(rows: pd.DataFrame) -> str:
    roots = rows[rows["row"] == "fixed_point"]
    attractors = roots[roots["stability"] == "stable"]
    listed = " and ".join(f"'{row.word}' at a share of {row.word_share:.3g}" for row in attractors.itertuples())
    if len(attractors) > 1:
        return f"{len(attractors)} attractors compete ({listed}), so small groups can end at either"
    if len(attractors) == 1 and len(roots) == 1:
        return f"the only fixed point has {listed}"
    marginal = roots[roots["stability"] == "marginal"]["word"].tolist()
    if marginal:
        return f"the fixed point at '{marginal[0]}' is marginal, so it is approached or left without a rate"
    return f"it has {len(roots)} fixed points and {len(attractors)} of them attract"
