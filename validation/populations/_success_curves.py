"""Success rates round by round: real populations against a policy estimated from other runs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from meanfield import InputError
from meanfield.datasets import RealPopulations
from meanfield.toolbox import whole_number
from validation.naming_game import LazyPolicy
from validation.naming_game._stopped_runs import play_success_curves
from validation.populations._back_off import BackOffPolicy
from validation.populations._conditions import Condition
from validation.populations._experiment import Experiment, as_table
from validation.populations._outcomes import Options, against_imitations, dealt, imitate

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
    options = Options.checked(draws, runs, seed, level, None, numbers=rounds)
    parts = []
    for one in Experiment.all_of(populations):
        if one.runs["experiment"].tolist().count("from_empty") < 2:
            continue
        for fold, tested in one.folds("run", 2, options.seed):
            policies = BackOffPolicy(one.choices.of(~tested[one.run_of])).sample(options.draws, options.seed)
            for where, conditions, _ in one.conditions(None, tested):
                for condition in conditions if where["experiment"] == "from_empty" else ():
                    curve = _curve(one, condition, policies, options, rounds)
                    parts.append(curve.assign(**where, fold=fold))
    if not parts:
        raise InputError("populations: expected at least two runs from empty memories of one model and options")
    rows = pd.concat(parts)[[*PLACE, "runs", "observed", "predicted", "low", "high", "p_value"]].to_dict("records")
    told = {name: getattr(options, name) for name in ("draws", "runs", "seed", "level")}
    return as_table(rows, "success_curves", **told)


def _curve(
    experiment: Experiment, condition: Condition, policies: list[LazyPolicy], options: Options, rounds: int
) -> pd.DataFrame:
    """Success rates of the real runs of a condition beside runs of drawn policies."""
    # Shares of successes (run, round), NaN in rounds that a run did not finish, and the same of each draw
    real, N = np.full((len(condition.runs), rounds), np.nan), condition.n_agents
    for row, run in enumerate(experiment.runs.index.get_indexer(condition.runs.index)):
        success = np.equal(*experiment.said[experiment.run == run].T)
        finished = min(rounds, len(success) // N)
        real[row, :finished] = success[: finished * N].reshape(finished, N).mean(1)
    played = np.empty((len(policies), options.runs, rounds))
    for k, policy in enumerate(policies):
        for stop, number in dealt(condition.stops(rounds * N), options.runs):
            numbers = k * options.runs + number
            played[k, number] = play_success_curves(policy, N, stop, options.seed, numbers, rounds)[1]
        policy.forget()
    kept = np.isfinite(real).any(0)
    imitated = _means(imitate([played], [real], IMITATIONS, options.seed)[0], 1)[:, kept]
    predicted, observed = _means(played.reshape(-1, real.shape[1]), 0)[kept], _means(real, 0)[kept]
    spread = np.nanstd(imitated, axis=0).clip(min=1e-9)
    deviation = np.nanmax(np.abs(np.concatenate([observed[None], imitated]) - predicted) / spread, axis=1)
    low, high = np.nanquantile(imitated, [(1 - options.level) / 2, (1 + options.level) / 2], axis=0)
    table = {"round": 1 + np.flatnonzero(kept), "runs": np.isfinite(real).sum(0)[kept], "observed": observed}
    table |= {"predicted": predicted, "low": low, "high": high, "p_value": against_imitations(deviation)[1]}
    return pd.DataFrame(table)


def _means(curves: np.ndarray, axis: int) -> np.ndarray:
    """Means without NaN, NaN where there is nothing else."""
    return np.ma.masked_invalid(curves).mean(axis).filled(np.nan)
