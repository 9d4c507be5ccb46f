"""Success rates round by round: real populations against those of a policy estimated from other runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from meanfield import InputError
from meanfield.datasets import RealPopulations
from meanfield.toolbox import LARGEST_SEED, check_level, whole_number
from validation.naming_game import LazyPolicy
from validation.naming_game._stopped_runs import play_success_curves
from validation.populations._back_off import back_off_policy
from validation.populations._choices import choices_of, ordered_subjects
from validation.populations._conditions import Condition, conditions, with_lengths
from validation.populations._folds import folds_of
from validation.populations._statistics import p_value_of
from validation.populations._subject import draws_and_runs

IMITATIONS = 2000
PLACE = ["model", "pair", "memory_length", "n_agents", "fold", "round"]


def success_curves(
    populations: RealPopulations,
    *,
    rounds: int = 12,
    draws: int = 20,
    runs: int = 50,
    seed: int = 0,
    level: float = 0.99,
) -> pd.DataFrame:
    """Success rate by round of runs from empty memories, predicted from the other half of the runs.

    The runs of a model, options and memory length are dealt to two folds as in `cross_validate`. The choices in one
    give a policy (`back_off_policy`), and policies drawn from its posterior are played under the conditions of the
    other. Only runs that have not yet stopped count in a round, real and simulated.

    Parameters
    ----------
    populations
        Runs in order, as in `meanfield.datasets.ai_norms` with `ordered=True`, of any number of words.
    rounds
        Rounds of N interactions, ≥ 1.
    draws, runs
        Policies drawn, and simulated runs of each, ≥ 1.
    seed
        0 to 2^63 - 1.
    level
        Confidence of each single interval.

    Returns
    -------
    DataFrame with a row for each condition, fold that is predicted and round that a real run finished: `model`, `pair`,
    `memory_length`, `n_agents`, `fold`, `round`, from 1; `runs`, the real ones that finished it; `observed` and
    `predicted`, the mean shares of successes; `low` to `high`, where the mean of as many simulated runs of one drawn
    policy lies; and `p_value` of the whole curve, by the largest deviation in standard deviations of such means.

    Raises
    ------
    InputError
        If the runs are not in order, a number is out of range, or no model has two runs from empty memories.

    See Also
    --------
    back_off_policy : the estimate
    cross_validate : majority words, times and flips

    Examples
    --------
    Eight runs of six agents who say A in seven of ten cases, whatever they remember:

    >>> rng = np.random.default_rng(1)
    >>> table = pd.DataFrame({"run": np.repeat(range(8), 40), "step": np.tile(range(40), 8)})
    >>> table[["agent", "partner"]] = [rng.permutation(6)[:2] for _ in range(320)]
    >>> table[["said", "heard"]] = np.where(rng.random((320, 2)) < 0.7, "A", "B")
    >>> real = meanfield.datasets.from_events(table, memory_length=1)
    >>> curves = validation.populations.success_curves(real, rounds=2, draws=5, runs=20)
    >>> curves[["fold", "round", "runs", "observed", "predicted"]].round(2)
         fold  round  runs  observed  predicted
    0  1 of 2      1     4      0.54       0.57
    1  1 of 2      2     4      0.58       0.57
    2  2 of 2      1     4      0.58       0.60
    3  2 of 2      2     4      0.54       0.60
    """
    rounds = whole_number("rounds", rounds, 1)
    draws, runs = draws_and_runs(draws, runs, rounds)
    seed = whole_number("seed", seed, 0, LARGEST_SEED)
    check_level(level)
    parts = []
    for subject, table, events in ordered_subjects(populations):
        empty = table[table["experiment"] == "from_empty"]
        if len(empty) < 2:
            continue
        choices = choices_of(table, events)
        for fold, tested in folds_of(table, "run", 2, seed, "\0".join(map(str, subject))):
            known = choices.of(~np.isin(choices.run, table["run"][tested]))
            policies = list(enumerate(back_off_policy(known).sample(draws, seed)))
            for condition in _conditions(empty, table.index[tested]):
                real = _real_curves(events, condition.runs["run"], condition.n_agents, rounds)
                played = [_played(one, condition, seed, k * runs + np.arange(runs), rounds) for k, one in policies]
                curve = _compared(real, np.stack(played), seed, level)
                where = subject[0], subject[1].replace("_", "/"), subject[2], condition.n_agents, fold
                parts.append(curve.assign(**dict(zip(PLACE, where, strict=False))))
    if not parts:
        raise InputError("populations: expected at least two runs from empty memories of one model and options")
    columns = [*PLACE, "runs", "observed", "predicted", "low", "high", "p_value"]
    result = pd.concat(parts, ignore_index=True).reindex(columns=columns)
    result.attrs = {"kind": "success_curves", "draws": draws, "runs": runs, "seed": seed, "level": level}
    return result


def _conditions(empty: pd.DataFrame, tested: pd.Index) -> Iterator[Condition]:
    for _, part in with_lengths(empty).groupby("n_agents", sort=True):
        kept = [condition.of(tested.to_numpy()) for condition in conditions(part, None)]
        yield from (condition for condition in kept if len(condition.runs))


def _played(policy: LazyPolicy, condition: Condition, seed: int, number: np.ndarray, rounds: int) -> np.ndarray:
    """Curves (run, round) of runs with these numbers; each real run's rule and length as often as they occur."""
    most = rounds * condition.n_agents
    stops = [replace(stop, longest=min(stop.longest, most)) for stop in condition.stops]
    stops = [stops[k % len(stops)] for k in range(len(number))]
    curves = np.empty((len(number), rounds))
    for stop in sorted(set(stops)):
        some = [one == stop for one in stops]
        curves[some] = play_success_curves(policy, condition.n_agents, stop, seed, number[some], rounds)[1]
    policy.forget()
    return curves


def _real_curves(events: pd.DataFrame, runs: pd.Series, n_agents: int, rounds: int) -> np.ndarray:
    """Shares of successes (run, round), NaN in rounds that a run did not finish."""
    curves = np.full((len(runs), rounds), np.nan)
    for row, run in enumerate(runs):
        played = events[events["run"] == run].sort_values("step")
        success = (played["said"].astype(str) == played["heard"].astype(str)).to_numpy()
        finished = min(rounds, len(success) // n_agents)
        curves[row, :finished] = success[: finished * n_agents].reshape(finished, n_agents).mean(1)
    return curves


def _compared(real: np.ndarray, played: np.ndarray, seed: int, level: float) -> pd.DataFrame:
    """Real curves (run, round) beside played ones (draw, run, round)."""
    draws, runs, _ = played.shape
    chosen = np.random.default_rng(seed).integers(runs, size=(draws, -(-IMITATIONS // draws), len(real)))
    kept = np.isfinite(real).any(0)
    imitated = _means(played[np.arange(draws)[:, None, None], chosen].reshape(-1, *real.shape), 1)[:, kept]
    predicted, observed = _means(played.reshape(-1, real.shape[1]), 0)[kept], _means(real, 0)[kept]
    spread = np.nanstd(imitated, axis=0).clip(min=1e-9)
    deviation = np.nanmax(np.abs(np.concatenate([observed[None], imitated]) - predicted) / spread, axis=1)
    low, high = np.nanquantile(imitated, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return pd.DataFrame(
        {
            "round": 1 + np.flatnonzero(kept),
            "runs": np.isfinite(real).sum(0)[kept],
            "observed": observed,
            "predicted": predicted,
            "low": low,
            "high": high,
            "p_value": p_value_of(deviation[0], deviation[1:]),
        }
    )


def _means(curves: np.ndarray, axis: int) -> np.ndarray:
    """Means of what is not NaN, NaN where there is nothing."""
    number = np.isfinite(curves).sum(axis)
    with np.errstate(invalid="ignore"):
        return np.nansum(curves, axis=axis) / np.where(number, number, np.nan)
