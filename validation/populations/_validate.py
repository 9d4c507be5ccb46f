"""Tests of whether policies estimated from agents' choices reproduce what their populations did."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import xarray as xr
from tqdm.auto import tqdm

import meanfield
from meanfield import InputError
from meanfield.datasets import RealPopulations
from meanfield.toolbox import LARGEST_SEED, check_level, instance, real_number, whole_number
from validation.populations._back_off import BackOffPolicy, back_off_or_why
from validation.populations._conditions import SUBJECT, option_key, read_runs
from validation.populations._empirical_policy import check_columns, empirical_policy, why_not_tabulable
from validation.populations._power import power_lines
from validation.populations._subject import (
    AGREES,
    DISAGREES,
    NOT_SIMULATED,
    TOO_FEW,
    Options,
    Row,
    Subject,
    draws_and_runs,
)

MUCH = 0.2  # of the choices held out, with memories of which the policy is a guess


def validate(
    populations: RealPopulations | str | os.PathLike[str],
    *,
    draws: int = 40,
    runs: int = 100,
    seed: int = 0,
    level: float = 0.99,
    window: int | None = None,
    sharpness: float = 1.0,
    progress: bool = False,
) -> pd.DataFrame:
    """Compare real populations of language models with simulated ones of policies estimated from their agents' choices.

    For each model, options and memory length a policy is estimated (`empirical_policy`, or `back_off_policy` where a
    table of its memory states would be too large), and `draws` policies are drawn from its posterior. With each, `runs`
    runs are simulated under each condition of the real runs: number of agents, memories at the start, committed agents,
    the rule by which runs stop, and the length at which they are cut. The policies come from the same runs that they
    predict: agreement shows that choices by memory suffice to explain the outcomes, not that other runs were foreseen.
    `cross_validate` predicts runs from others.

    Parameters
    ----------
    populations
        Result of `meanfield.datasets.ai_norms`, or a folder with `choice_counts.csv.gz` and `runs.csv` like those.
    draws
        Policies drawn from the posterior, ≥ 1.
    runs
        Simulated runs of each of them under each condition, ≥ 1.
    seed
        0 to 2^63 - 1. The result of a policy does not depend on the others in the folder.
    level
        Confidence of a verdict: 'disagrees' where the p-value is below 1 - level.
    window
        Interactions that all have to succeed for a run to stop. Default: inferred from how the real runs ended, for
        each run if they are in order (`meanfield.datasets.ai_norms(ordered=True)`). Runs in order that ended after no
        usual number of successes did not stop: the log ends there.
    sharpness
        Raise choice probabilities to this power, like a sampling temperature lower by this factor, to find the cause of
        a disagreement.
    progress
        Show a progress bar.

    Returns
    -------
    DataFrame with a row for each test:

    - `model`, `pair`, `memory_length`, `experiment`, `n_agents`, `initial_consensus`; `n_committed`, -1 in a row on all
      numbers of committed agents;
    - `quantity`: 'majority word' (said most often in the last 3N interactions, whether or not the run agrees on it, as
      a winner has to, see `winners`), 'time' (interactions until the run stopped or was cut), 'success rate' (of the
      last 3N interactions) or 'flips' (another word than at the start, with 95 % success);
    - `runs`, the number of real ones; `observed` and `predicted`, the share of the word that is predicted most often,
      or of flips, else the median; `low` and `high`, the Wilson interval of an observed share; `statistic`, `p_value`,
      `verdict` ('agrees', 'disagrees', 'too few data'; 'not simulated' where no policy can be estimated or agents are
      committed from mid-run on) and `note`.

    Raises
    ------
    InputError
        If a table is damaged, lacks a column or holds an impossible value, or a number is out of range; real runs have
        at most 100,000 agents and 10^8 interactions.

    See Also
    --------
    cross_validate : runs that were held out
    winners : the words that runs agree on
    report : a line a population

    Examples
    --------
    Eight runs of six agents who say A in seven of ten cases, whatever they remember:

    >>> rng = np.random.default_rng(1)
    >>> table = pd.DataFrame({"run": np.repeat(range(8), 40), "step": np.tile(range(40), 8)})
    >>> table[["agent", "partner"]] = [rng.permutation(6)[:2] for _ in range(320)]
    >>> table[["said", "heard"]] = np.where(rng.random((320, 2)) < 0.7, "A", "B")
    >>> real = meanfield.datasets.from_events(table, memory_length=1)
    >>> tests = validation.populations.validate(real, draws=5, runs=20)
    >>> tests[["experiment", "n_agents", "quantity", "runs", "observed", "predicted", "verdict"]].round(2)
       experiment  n_agents       quantity  runs  observed  predicted verdict
    0  from_empty         6  majority word     8       1.0        1.0  agrees
    """
    if isinstance(populations, (str, os.PathLike)):
        populations = meanfield.datasets.ai_norms(populations)
    instance("populations", populations, RealPopulations)
    draws, runs = draws_and_runs(draws, runs)
    seed = whole_number("seed", seed, 0, LARGEST_SEED)
    window = None if window is None else whole_number("window", window, 1)
    check_level(level)
    real_number("sharpness", sharpness, above=0)
    options = Options(draws, runs, seed, level, window, float(sharpness))
    table = read_runs(populations.runs)
    counts = _read_counts(populations.choice_counts)
    rows: list[Row] = []
    groups = list(table.groupby(SUBJECT, sort=True))
    for subject, real in tqdm(groups, desc="real populations", unit="policy", disable=not progress, leave=False):
        choices = counts[(counts[SUBJECT] == list(subject)).all(axis=1)]
        rows += Subject(subject, _policy(choices), options).rows(real)
    result = pd.DataFrame(rows)
    result.attrs = {"kind": "real_populations", **options._asdict()}
    return result


def _policy(choices: pd.DataFrame) -> xr.Dataset | BackOffPolicy | str:
    """The policy that was estimated, or why there is none."""
    if choices.empty:
        return "no choices were counted"
    if not why_not_tabulable(len(choices["options"].iloc[0].split("_")), int(choices["memory_length"].iloc[0])):
        return empirical_policy(choices)
    return back_off_or_why(choices)


def _read_counts(counts: pd.DataFrame) -> pd.DataFrame:
    check_columns("choice_counts", counts)
    return counts.assign(options=[option_key(str(options), "_") for options in counts["options"]])


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
