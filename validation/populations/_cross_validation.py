"""Real populations predicted from others: outcomes of runs, and single choices beside simple laws."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import xarray as xr
from tqdm.auto import tqdm

from meanfield import MemorySpace
from meanfield.datasets import RealPopulations
from meanfield.toolbox import LARGEST_SEED, check_level, whole_number
from validation.populations._back_off import BackOffPolicy, back_off_or_why
from validation.populations._baselines import BASELINES, Law, policy_law
from validation.populations._choices import Choices, choices_of, ordered_subjects
from validation.populations._empirical_policy import estimated_policy, why_not_tabulable
from validation.populations._folds import check_by, folds_of
from validation.populations._subject import Options, Row, Subject, draws_and_runs

POLICY = "policy"
RESAMPLES = 4000
FEW = 5  # choices with a memory, of which fewer leave the policy to what shorter memories tell


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

    The runs of each model, options and memory length are dealt into folds. The policy that predicts a fold is estimated
    from the choices in all other folds, and tested as in `validate`. Only what describes the experiment comes from all
    runs: its conditions, and the rule and the lengths at which runs stop.

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
    DataFrame as from `validate`, with `fold`; `known_choices`, the number of choices of which the policy was estimated;
    and `unfamiliar`, the fraction of the fold's choices that were made with memories of which fewer than five are
    known. A share 1 - level of all rows is expected to disagree by chance; rows on the same runs depend on each other.
    Few runs, as those that all ended at one word, leave the policy a guess where the others went, and more rows
    disagree: in simulated logs of one policy 10 % with four runs and 6 % with ten, in place of 1 %, mostly where
    `unfamiliar` is above 0.2.

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
    folds, seed = check_by(by, folds), whole_number("seed", seed, 0, LARGEST_SEED)
    draws, runs = draws_and_runs(draws, runs)
    window = None if window is None else whole_number("window", window, 1)
    check_level(level)
    options = Options(draws, runs, seed, level, window, 1.0)
    rows: list[Row] = []
    subjects = ordered_subjects(populations)
    for subject, real, events in tqdm(subjects, desc="real populations", unit="policy", disable=not progress):
        choices = choices_of(real, events)
        for fold, tested in folds_of(real, by, folds, seed, "\0".join(map(str, subject))):
            known = choices.of(~np.isin(choices.run, real["run"][tested]))
            policy = _policy(known, subject[2], subject[0])
            held_out = choices.of(np.isin(choices.run, real["run"][tested]))
            where = {"fold": fold, "known_choices": len(known.chosen), "unfamiliar": _unfamiliar(known, held_out)}
            rows += [where | row for row in Subject(subject, policy, options).rows(real, real.index[tested].to_numpy())]
    result = pd.DataFrame(rows)
    result.attrs = {"kind": "real_populations", **options._asdict(), "by": by, "folds": folds}
    return result


def _unfamiliar(known: Choices, held_out: Choices) -> float:
    """The fraction of choices held out with memories of which few choices are known."""
    _, state = np.unique(np.concatenate([known.memory, held_out.memory]), axis=0, return_inverse=True)
    times = np.bincount(state[: len(known.chosen)], minlength=state.max(initial=0) + 1)
    return float((times[state[len(known.chosen) :]] < FEW).mean()) if len(held_out.chosen) else np.nan


def _policy(known: Choices, memory_length: int, model: str) -> xr.Dataset | BackOffPolicy | str:
    if not len(known.chosen):
        return "no choices were counted in other runs"
    if why_not_tabulable(len(known.words), memory_length):
        return back_off_or_why(known)
    space = MemorySpace(len(known.words), memory_length)
    return estimated_policy(known.counts(memory_length), known.words, space, model)


def choice_scores(
    populations: RealPopulations,
    *,
    by: str = "run",
    folds: int = 2,
    seed: int = 0,
    level: float = 0.95,
    progress: bool = False,
) -> pd.DataFrame:
    """Log-likelihood of single choices in runs that were held out, under the policy and under simpler laws.

    Each law is estimated from the choices in all other folds: the policy (the mean of the estimate that `validate`
    uses); constant frequencies of the words; the policy with memories of the last interaction alone; the minimal naming
    game, whose agents choose from their inventories; and the majority of the memory. The last two choose any word with
    a probability that is estimated.

    Parameters
    ----------
    populations, by, folds, progress
        As in `cross_validate`.
    seed
        Of folds and intervals, 0 to 2^63 - 1.
    level
        Confidence of intervals.

    Returns
    -------
    DataFrame with a row for each `model`, `pair`, `memory_length` and `law`: `runs` and `choices` held out;
    `log_likelihood`, the mean of ln(probability of the choice made) in nats; `gain`, by which the policy's is greater;
    and the intervals `low` to `high` and `gain_low` to `gain_high` of both, by bootstrap over runs. A law that cannot
    be estimated has NaN, and so do all where there are no other runs, as a warning tells.

    Raises
    ------
    InputError
        If the runs are not in order, a table lacks a column or holds an impossible value, or a number is out of range.

    See Also
    --------
    cross_validate : outcomes of runs

    Examples
    --------
    Eight runs of six agents who say A in seven of ten cases, whatever they remember:

    >>> rng = np.random.default_rng(1)
    >>> table = pd.DataFrame({"run": np.repeat(range(8), 40), "step": np.tile(range(40), 8)})
    >>> table[["agent", "partner"]] = [rng.permutation(6)[:2] for _ in range(320)]
    >>> table[["said", "heard"]] = np.where(rng.random((320, 2)) < 0.7, "A", "B")
    >>> real = meanfield.datasets.from_events(table, memory_length=1)
    >>> scores = validation.populations.choice_scores(real)
    >>> scores[["law", "choices", "log_likelihood"]].round(2)  # memories of words tell nothing here
                        law  choices  log_likelihood
    0                policy      640           -0.60
    1  constant frequencies      640           -0.60
    2      last interaction      640           -0.60
    3   minimal naming game      640           -0.67
    4              majority      640           -0.67
    """
    folds, seed = check_by(by, folds), whole_number("seed", seed, 0, LARGEST_SEED)
    check_level(level)
    rows: list[Row] = []
    subjects = ordered_subjects(populations)
    for subject, real, events in tqdm(subjects, desc="choices", unit="policy", disable=not progress, leave=False):
        choices = choices_of(real, events)
        held_out = np.full((len(_laws(subject[2])), len(choices.chosen)), np.nan)
        for _, tested in folds_of(real, by, folds, seed, "\0".join(map(str, subject))):
            of_fold = np.isin(choices.run, real["run"][tested])
            held_out[:, of_fold] = _scores(choices.of(~of_fold), choices.of(of_fold), subject[2])
        where = {"model": subject[0], "pair": "/".join(choices.words), "memory_length": subject[2]}
        rows += [where | row for row in _summaries(held_out, choices.run, list(_laws(subject[2])), level, seed)]
        if np.isnan(held_out).all():
            told = f"{where['model']} {where['pair']}, H = {subject[2]}: {len(real)} run{'s' * (len(real) > 1)}"
            warnings.warn(f"{told} of which none is foretold by others, so that its scores are NaN", stacklevel=2)
    result = pd.DataFrame(rows)
    result.attrs = {"kind": "choice_scores", "by": by, "folds": folds, "seed": seed, "level": level}
    return result


def _laws(memory_length: int) -> dict[str, Callable[[Choices], Law | None]]:
    return {POLICY: policy_law(memory_length), **BASELINES}


def _scores(known: Choices, held_out: Choices, memory_length: int) -> np.ndarray:
    """Log-probabilities (law, choice); NaN where nothing is known or there is no such law."""
    scores = np.full((len(_laws(memory_length)), len(held_out.chosen)), np.nan)
    for k, law_of in enumerate(_laws(memory_length).values()):
        if len(known.chosen) and (law := law_of(known)) is not None:
            scores[k] = law(held_out)
    return scores


def _summaries(scores: np.ndarray, run: np.ndarray, laws: list[str], level: float, seed: int) -> list[Row]:
    """Means over choices, with intervals over runs."""
    scored = ~np.isnan(scores).all(0)
    _, number = np.unique(run[scored], return_inverse=True)
    n_runs = int(number.max(initial=-1)) + 1
    if n_runs == 0:
        unknown = ("log_likelihood", "low", "high", "gain", "gain_low", "gain_high")
        nothing: Row = {"runs": 0, "choices": 0, **dict.fromkeys(unknown, np.nan)}
        return [{"law": law} | nothing for law in laws]
    sizes = np.bincount(number, minlength=n_runs)
    sums = np.stack([np.bincount(number, weights=one[scored], minlength=n_runs) for one in scores])
    weights = np.random.default_rng(seed).multinomial(n_runs, np.full(n_runs, 1 / n_runs), size=RESAMPLES)
    mean = sums.sum(1) / sizes.sum()
    resampled = (weights @ sums.T / (weights @ sizes)[:, None]).T
    rows: list[Row] = []
    for k, law in enumerate(laws):
        low, high = _interval(resampled[k], level, n_runs)
        gain_low, gain_high = _interval(resampled[0] - resampled[k], level, n_runs)
        counted = {"law": law, "runs": n_runs, "choices": int(scored.sum())}
        values = {"log_likelihood": mean[k], "low": low, "high": high}
        rows.append(counted | values | {"gain": mean[0] - mean[k], "gain_low": gain_low, "gain_high": gain_high})
    return rows


def _interval(values: np.ndarray, level: float, n_runs: int) -> tuple[float, float]:
    if n_runs < 2 or np.isnan(values).any():
        return np.nan, np.nan
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
