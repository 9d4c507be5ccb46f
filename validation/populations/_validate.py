"""Tests of whether policies estimated from agents' choices reproduce what their populations did, or others do."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pandas as pd

import meanfield
from meanfield import InputError
from meanfield.datasets import RealPopulations
from meanfield.toolbox import check_columns, instance
from validation.populations._back_off import policy_or_why
from validation.populations._choices import COLUMNS, Choices
from validation.populations._conditions import SUBJECT, option_key, read_runs
from validation.populations._experiment import Experiment, as_table, check_folds, each
from validation.populations._outcomes import (
    AGREES,
    DISAGREES,
    NOT_SIMULATED,
    PREDICTED,
    TOO_FEW,
    Options,
    outcome_tests,
)
from validation.populations._power import power_lines

MUCH = 0.2  # share of held-out choices with memories where the policy is a guess
FEW = 5  # choices with a memory; with fewer the policy relies on shorter memories


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
    table of its memory states would be too large). With each of `draws` policies of its posterior, `runs` runs are
    simulated under each condition of the real runs: number of agents, memories at the start, committed agents, the rule
    by which runs stop, and the length at which they are cut. The policies come from the runs that they predict:
    agreement shows that choices by memory explain the outcomes, not that other runs were foreseen (`cross_validate`).

    Parameters
    ----------
    populations
        Result of `meanfield.datasets.ai_norms`, or a folder with `choice_counts.csv.gz` and `runs.csv` like those.
    draws, runs
        Policies drawn from the posterior, and simulated runs of each under each condition, ≥ 1.
    seed
        0 to 2^63 - 1. The result of a policy does not depend on the others in the folder.
    level
        Confidence of a verdict: 'disagrees' where the p-value is below 1 - level.
    window
        Interactions that all have to succeed for a run to stop. Default: inferred from how the real runs ended, for
        each run if they are in order. Runs in order that ended after no usual number of successes did not stop: the log
        ends there.
    sharpness
        Power to which choice probabilities are raised, as by a lower temperature, to find the cause of a disagreement.
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
    options = Options.checked(draws, runs, seed, level, window, sharpness)
    table, counts = read_runs(populations.runs), populations.choice_counts
    check_columns("choice_counts", counts, COLUMNS)
    counts = counts.assign(options=counts["options"].astype(str).map(option_key))
    experiments = [Experiment(subject, real) for subject, real in table.groupby(SUBJECT, sort=True)]  # type: ignore[arg-type]
    rows: list[dict] = []
    for one in each(experiments, "real populations", progress):
        mine = counts[(counts[SUBJECT] == list(one.subject)).all(axis=1)]
        policy = "no choices were counted" if mine.empty else policy_or_why(Choices.of_table(mine), one.model)
        rows += outcome_tests(one, policy, options)
    return as_table(rows, "real_populations", **options._asdict())


def cross_validate(
    populations: RealPopulations,
    *,
    by: str = "run",
    folds: int = 2,
    draws: int = 40,
    runs: int = 100,
    seed: int = 0,
    level: float = 0.99,
    window: int | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Predict real runs with policies estimated from the choices of other runs.

    The policy that predicts a fold is estimated from the choices in all other folds, and tested as in `validate`. Only
    the experiment is described by all runs: its conditions, and the rule and lengths at which runs stop.

    Parameters
    ----------
    populations
        Runs in order, as from `meanfield.datasets.ai_norms(ordered=True)` or `meanfield.datasets.from_events`.
    by
        'run': the runs under each condition are dealt at random to `folds` folds. 'experiment': a fold is all runs of
        an experiment (empty memories, a consensus or committed agents; their words and N), predicted from the others.
    folds
        ≥ 2.
    draws, runs, seed, level, window, progress
        As in `validate`.

    Returns
    -------
    DataFrame as from `validate`, with `fold`; `known_choices`, from which the policy was estimated; and `unfamiliar`,
    the fraction of the fold's choices with memories for which fewer than five are known. A share 1 - level of all rows
    is expected to disagree by chance; rows on the same runs depend on each other. Few runs leave the policy a guess
    where the others went, and more rows disagree: in simulated logs of one policy 10 % with four runs and 6 % with ten
    in place of 1 %, mostly where `unfamiliar` is above 0.2.

    Raises
    ------
    InputError
        If the runs are not in order, a table lacks a column or holds an impossible value, or a number is out of range.

    See Also
    --------
    choice_scores : single choices instead of outcomes
    report : a line a population

    Examples
    --------
    Twenty runs of six agents who say A in four of five cases, whatever they remember:

    >>> rng = np.random.default_rng(1)
    >>> table = pd.DataFrame({"run": np.repeat(range(20), 40), "step": np.tile(range(40), 20)})
    >>> table[["agent", "partner"]] = [rng.permutation(6)[:2] for _ in range(800)]
    >>> table[["said", "heard"]] = np.where(rng.random((800, 2)) < 0.8, "A", "B")
    >>> real = meanfield.datasets.from_events(table, memory_length=1)
    >>> tests = validation.populations.cross_validate(real, draws=5, runs=40)
    >>> tests[["fold", "known_choices", "quantity", "observed", "predicted", "verdict"]].round(2)
         fold  known_choices       quantity  observed  predicted verdict
    0  1 of 2            800  majority word       1.0        1.0  agrees
    1  2 of 2            800  majority word       1.0        1.0  agrees
    """
    folds = check_folds(by, folds)
    options = Options.checked(draws, runs, seed, level, window)
    rows: list[dict] = []
    for one in each(Experiment.all_of(populations), "real populations", progress):
        for fold, tested in one.folds(by, folds, options.seed):
            held_out = tested[one.run_of]
            known, other = one.choices.of(~held_out), one.choices.of(held_out)
            nothing = "no choices were counted in other runs"
            policy = policy_or_why(known, one.model) if len(known.chosen) else nothing
            where = {"fold": fold, "known_choices": len(known.chosen), "unfamiliar": _unfamiliar(known, other)}
            rows += [where | row for row in outcome_tests(one, policy, options, tested)]
    return as_table(rows, "real_populations", **options._asdict(), by=by, folds=folds)


def _unfamiliar(known: Choices, held_out: Choices) -> float:
    """The fraction of held-out choices with memories that have few known choices."""
    _, state = np.unique(np.concatenate([known.memory, held_out.memory]), axis=0, return_inverse=True)
    times = np.bincount(state[: len(known.chosen)], minlength=state.max(initial=0) + 1)
    return float((times[state[len(known.chosen) :]] < FEW).mean()) if len(held_out.chosen) else np.nan


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
    # Rows on one number of committed agents are parts of those on all.
    whole = table.loc[table["n_committed"] < 0]
    lines, verdicts = [], []
    for (model, pair, experiment), tests in whole.groupby(["model", "pair", "experiment"], sort=True):  # type: ignore[misc]
        p_values, found = tests["p_value"].dropna(), set(tests["verdict"])
        if len(p_values) and p_values.min() * len(p_values) < 1 - level:
            verdicts.append(DISAGREES)
        else:
            verdicts.append(AGREES if AGREES in found else NOT_SIMULATED if found == {NOT_SIMULATED} else TOO_FEW)
        words = "{" + ", ".join(str(pair).split("/")) + "}"
        lines.append(f"{model} {words}, {experiment}: {verdicts[-1]}; {_grounds(tests, verdicts[-1])}")
    number, single = Counter(verdicts), Counter(whole["verdict"])
    shown = [AGREES, DISAGREES, TOO_FEW, *([NOT_SIMULATED] if number[NOT_SIMULATED] else [])]
    listed = ", ".join(f"{number[verdict]} {verdict}" for verdict in shown)
    chance, by_chance = ((1 - level) * (one[AGREES] + one[DISAGREES]) for one in (number, single))
    decided = single[AGREES] + single[DISAGREES]
    told = f"{single[DISAGREES]} of {decided} single tests disagree, up to {by_chance:.2g} by chance"
    for verdict, have in ((TOO_FEW, "have too few data"), (NOT_SIMULATED, "are not simulated")):
        told += f"; {single[verdict]} more {have}" if single[verdict] else ""
    summary = f"summary: {listed}, of {len(verdicts)} combinations of model, pair and experiment"
    confidence = f"at {100 * level:g} % confidence each (by chance up to {chance:.2g} would disagree)"
    return [*lines, f"{summary} {confidence}; {told}"]


def _grounds(tests: pd.DataFrame, verdict: str) -> str:
    known = tests[tests["p_value"].notna()]
    if known.empty:
        return str(tests["note"].iloc[0])
    if verdict == DISAGREES:
        known = known[known["verdict"] == DISAGREES]
    told = [f"{len(tests)} tests"] if len(tests) > 1 else []
    for row in known.nsmallest(2, "p_value").itertuples():
        start = f" from {row.initial_consensus}" if row.initial_consensus else ""
        where = f"H = {row.memory_length}, N = {row.n_agents}{start}, {row.runs} run{'s' * (row.runs != 1)}"
        if (new := getattr(row, "unfamiliar", 0)) > MUCH:
            where += f", {100 * new:.0f} % of the choices with memories hardly known"
        word = f" for {row.note.removeprefix(PREDICTED)}" if row.note.startswith(PREDICTED) else ""
        predicted = f"{row.quantity} {row.observed:.3g} where {row.predicted:.3g} is predicted{word}"
        told.append(f"{predicted} ({where}, p = {row.p_value:.2g})")
    return "; ".join(told)
