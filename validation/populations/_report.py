"""What tables of tests say, in lines of text."""

from __future__ import annotations

import numpy as np
import pandas as pd

from meanfield import InputError
from validation.populations._power import power_lines
from validation.populations._statistics import AGREES, DISAGREES, NOT_SIMULATED, TOO_FEW

MUCH = 0.2  # of the choices held out, with memories of which the policy is a guess


def report(table: pd.DataFrame) -> list[str]:
    """Lines of text: the verdict on each model, pair and experiment with its grounds, and last a summary.

    A line disagrees if one of its tests does after Holm's correction for their number. It has too few data if none of
    its tests agrees either. The table of `validation.populations.power` has a sentence for each bias and number of
    agents instead.

    Raises
    ------
    InputError
        If `table` is not a result of `validation.populations.validate`, `cross_validate` or `power`.

    Examples
    --------
    >>> import textwrap
    >>> table = validation.populations.power(0.1, n_agents=24, runs=40)
    >>> print(textwrap.fill(validation.populations.report(table)[0], 100))
    40 runs of 24 agents call a bias κ of 0.1 (the strong word wins with chance 0.688) with probability
    0.64 at 95 % confidence; 61 runs are needed for 0.8
    """
    if isinstance(table, pd.DataFrame) and table.attrs.get("kind") == "power":
        return power_lines(table)
    if not isinstance(table, pd.DataFrame) or not {"verdict", "p_value", "n_committed"} <= set(table.columns):
        raise InputError("table: expected what validation.populations.validate returns")
    level = float(table.attrs["level"])
    lines, verdicts = [], []
    for _, rows in table.groupby(["model", "pair", "experiment"], sort=True):
        model, pair, experiment = rows[["model", "pair", "experiment"]].iloc[0]
        # Rows on one number of committed agents are parts of those on all.
        tests = rows[rows["n_committed"] < 0]
        verdicts.append(_overall(tests, level))
        words = "{" + ", ".join(str(pair).split("/")) + "}"
        lines.append(f"{model} {words}, {experiment}: {verdicts[-1]}; {_grounds(tests, verdicts[-1])}")
    number = {verdict: verdicts.count(verdict) for verdict in (AGREES, DISAGREES, TOO_FEW)}
    chance = (1 - level) * (number[AGREES] + number[DISAGREES])
    number |= {NOT_SIMULATED: idle} if (idle := verdicts.count(NOT_SIMULATED)) else {}
    listed = ", ".join(f"{times} {verdict}" for verdict, times in number.items())
    single_verdicts = table.loc[table["n_committed"] < 0, "verdict"].tolist()
    disagree, undecided = single_verdicts.count(DISAGREES), single_verdicts.count(TOO_FEW)
    idle = single_verdicts.count(NOT_SIMULATED)
    decided = len(single_verdicts) - undecided - idle
    single = f"{disagree} of {decided} single tests disagree, up to {(1 - level) * decided:.2g} by chance"
    single += f"; {undecided} more have too few data" if undecided else ""
    single += f"; {idle} more are not simulated" if idle else ""
    summary = f"summary: {listed}, of {len(verdicts)} combinations of model, pair and experiment"
    confidence = f"at {100 * level:g} % confidence each (by chance up to {chance:.2g} would disagree)"
    return [*lines, f"{summary} {confidence}; {single}"]


def _overall(tests: pd.DataFrame, level: float) -> str:
    p_values = [p for p in tests["p_value"] if not np.isnan(p)]
    if p_values and min(p_values) * len(p_values) < 1 - level:
        return DISAGREES
    found = set(tests["verdict"])
    return AGREES if AGREES in found else TOO_FEW if TOO_FEW in found else NOT_SIMULATED


def _grounds(tests: pd.DataFrame, verdict: str) -> str:
    known = tests[tests["p_value"].notna()]
    if known.empty:
        return str(tests["note"].iloc[0])
    if verdict == DISAGREES:
        known = known[known["verdict"] == DISAGREES]
    told = [f"{len(tests)} tests"] if len(tests) > 1 else []
    for row in known.nsmallest(2, "p_value").itertuples():
        start = f" from {row.initial_consensus}" if row.initial_consensus else ""
        where = f"H = {row.memory_length}, N = {row.n_agents}{start}, {row.runs} runs"
        if (new := getattr(row, "unfamiliar", 0)) > MUCH:
            where += f", {100 * new:.0f} % of the choices with memories hardly known"
        told.append(
            f"{row.quantity} {row.observed:.3g} where {row.predicted:.3g} is predicted ({where}, p = {row.p_value:.2g})"
        )
    return "; ".join(told)
