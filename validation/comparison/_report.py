"""A comparison in words, one line a population size."""

from __future__ import annotations

import numpy as np
import xarray as xr
from rich.markup import escape
from rich.table import Table

from meanfield.toolbox import MIXED, PrintedTable, canonical_order, expect
from validation.comparison._error_in_n import LIMIT_AGREES, LIMIT_DIFFERS, LIMIT_TOO_SMALL, LIMIT_UNKNOWN


def comparison_table(comparison: xr.Dataset) -> Table:
    """The verdicts of `compare` in words, a line for each N: does the word share follow theory, and where do runs end?

    It is a table of rich, which prints as text of 80 columns. With several N the last line gives the difference for
    N → ∞.

    Raises
    ------
    InputError
        If `comparison` is not a result of `compare`.

    Examples
    --------
    >>> policy = meanfield.datasets.smollm2().sel(pair="his/her")
    >>> runs = validation.simulate(policy, n_agents=[20, 2000], runs=200, seed=1, max_rounds=15, record_rounds=15)
    >>> table = validation.comparison.comparison_table(validation.compare(meanfield.solve(policy), runs))
    >>> print(table)
       Simulation against mean field: SmolLM2-135M-Instruct {his, her}, 200 runs
    ┏━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┓
    ┃       ┃                                  ┃ runs that end as predicted:       ┃
    ┃     N ┃ word share (99 % band)           ┃ consensus on his or no consensus  ┃
    ┡━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┩
    │    20 │ follows theory over 15 rounds    │ most: 1.000 (0.968 to 1.000)      │
    │       │ (off by at most 0.009)           │                                   │
    │ 2,000 │ follows theory over 15 rounds    │ most: 1.000 (0.968 to 1.000)      │
    │       │ (off by at most 0.00092)         │                                   │
    └───────┴──────────────────────────────────┴───────────────────────────────────┘
     for N → ∞ simulation agrees with theory (off by at most 0.00084, band ±0.0022)
    """
    expect(comparison, "comparison", "comparison")
    comparison = canonical_order(comparison, "comparison").transpose(..., "n_agents", "word", "bound")
    predicted, end = (str(comparison[f"predicted_{name}"].item()) for name in ("word", "end"))
    ends = [f"consensus on {predicted}"] * (predicted != MIXED) + ["no consensus"] * (end != predicted or end == MIXED)
    level = 100 * comparison.attrs["option_level"]
    words = "{" + ", ".join(map(str, comparison["word_label"].values)) + "}"
    model = f"{comparison['model'].item()} " if "model" in comparison.coords else ""
    policy = comparison.attrs.get("policy", model + words)
    title = f"Simulation against mean field: {policy}, {comparison.attrs['option_runs']:,} runs"
    table = PrintedTable(title=escape(title), caption=_limit_verdict(comparison))
    table.add_column("N", justify="right")
    table.add_column(f"word share ({level:g} % band)")
    table.add_column(f"runs that end as predicted: {escape(' or '.join(ends))}")
    for n_agents in comparison["n_agents"].values:
        line = comparison.sel(n_agents=n_agents)
        low, high = line["as_predicted_interval"].values
        verdict = "most" if bool(line["consensus_agrees"]) else "not most"
        ended = f"{verdict}: {float(line['as_predicted']):.3f} ({low:.3f} to {high:.3f})"
        table.add_row(f"{n_agents:,}", _trajectory_verdict(line), ended)
    return table


def _limit_verdict(comparison: xr.Dataset) -> str | None:
    verdict = str(comparison["limit_verdict"].item())
    if verdict == LIMIT_UNKNOWN:
        return None
    largest, band = (float(np.abs(comparison[name]).max()) for name in ("limit", "limit_band"))
    text = {
        LIMIT_AGREES: f"for N → ∞ simulation agrees with theory (off by at most {largest:.2g}, band ±{band:.2g})",
        LIMIT_DIFFERS: f"for N → ∞ simulation differs from theory (off by up to {largest:.2g}, band ±{band:.2g})",
        LIMIT_TOO_SMALL: "these N are too small to extrapolate: the variance of the runs does not fall as 1/N yet",
    }[verdict]
    slope = float(comparison["error_slope"])
    if np.isnan(slope):
        return text
    low, high = comparison["error_slope_interval"].values
    return f"{text}; over these N the error goes as N^{slope:.2f} ({low:.2f} to {high:.2f})"


def _trajectory_verdict(line: xr.Dataset) -> str:
    largest = float(np.abs(line["simulated"] - line["theory"]).max())
    if bool(line["trajectory_agrees"]):
        return f"follows theory over {int(line['round'].max())} rounds (off by at most {largest:.2g})"
    left = int(line["round"].values[~line["within_band"].values][0])
    return f"leaves theory in round {left} (off by up to {largest:.2g})"
