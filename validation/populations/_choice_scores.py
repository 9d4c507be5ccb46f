"""Single choices predicted from other runs, by the policy and by simple laws beside which it has to stand."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import xarray as xr
from scipy.optimize import minimize_scalar

from meanfield.datasets import RealPopulations
from meanfield.toolbox import LARGEST_SEED, check_level, whole_number
from validation.populations._back_off import policy_or_why
from validation.populations._choices import NOTHING, Choices
from validation.populations._experiment import Experiment, as_table, check_folds, each

RESAMPLES = 4000
PRIOR_COUNT = 0.5  # Jeffreys' prior of each word's frequency
LEAST_ERROR, MOST_ERROR = 1e-6, 1.0

Law = Callable[[Choices], np.ndarray]  # log-probability of each choice


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

    Each law is estimated from the choices in all other folds: the policy (the mean of the estimate of `validate`);
    constant frequencies; the policy with memories of one interaction; the minimal naming game, whose agents choose from
    their inventories; and the majority of the memory, both with errors of a probability that is estimated.

    Parameters
    ----------
    populations, by, folds, progress
        As in `cross_validate`.
    seed
        Seed of folds and intervals, 0 to 2^63 - 1.
    level
        Confidence of intervals.

    Returns
    -------
    DataFrame with a row for each `model`, `pair`, `memory_length` and `law`: `runs` and `choices` held out;
    `log_likelihood`, the mean of ln(probability of the choice made); `gain`, by which the policy's is greater; and the
    intervals `low` to `high` and `gain_low` to `gain_high` of both, by bootstrap over runs. A law that cannot be
    estimated has NaN, and so do all where there are no other runs, as a warning tells.

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
    folds, seed = check_folds(by, folds), whole_number("seed", seed, 0, LARGEST_SEED)
    check_level(level)
    rows: list[dict] = []
    for one in each(Experiment.all_of(populations), "choices", progress):
        scores = np.full((len(LAWS), len(one.choices.chosen)), np.nan)
        for _, tested in one.folds(by, folds, seed):
            held_out = tested[one.run_of]
            known = one.choices.of(~held_out)
            for k, law_of in enumerate(LAWS.values()):
                if len(known.chosen) and (law := law_of(known)) is not None:
                    scores[k, held_out] = law(one.choices.of(held_out))
        rows += [one.where | row for row in _summaries(scores, one.runs["run"].to_numpy()[one.run_of], level, seed)]
        if np.isnan(scores).all():
            runs = f"{len(one.runs)} run{'s' * (len(one.runs) > 1)}"
            told = f"{one.model} {'/'.join(one.words)}, H = {one.memory_length}: {runs}"
            warnings.warn(f"{told} that no other runs predict: the scores are NaN", stacklevel=2)
    return as_table(rows, "choice_scores", by=by, folds=folds, seed=seed, level=level)


def _summaries(scores: np.ndarray, run: np.ndarray, level: float, seed: int) -> list[dict]:
    """Means over choices, with intervals over runs."""
    scored = ~np.isnan(scores).all(0)
    _, number, sizes = np.unique(run[scored], return_inverse=True, return_counts=True)
    n_runs = len(sizes)
    sums = np.stack([np.bincount(number, weights=one[scored], minlength=n_runs) for one in scores])
    mean = sums.sum(1) / sizes.sum() if n_runs else np.full(len(sums), np.nan)
    resampled = np.full((len(sums), 1), np.nan)
    if n_runs > 1:
        weights = np.random.default_rng(seed).multinomial(n_runs, np.full(n_runs, 1 / n_runs), size=RESAMPLES)
        resampled = (weights @ sums.T / (weights @ sizes)[:, None]).T
    both = np.stack([resampled, resampled[0] - resampled])
    (low, gain_low), (high, gain_high) = np.quantile(both, [(1 - level) / 2, (1 + level) / 2], axis=2)
    table = {"law": list(LAWS), "runs": n_runs, "choices": int(scored.sum()), "log_likelihood": mean}
    table |= {"low": low, "high": high, "gain": mean[0] - mean, "gain_low": gain_low, "gain_high": gain_high}
    return pd.DataFrame(table).to_dict("records")


def constant_law(known: Choices) -> Law:
    """Each word has its frequency, whatever the memory."""
    counts = np.bincount(known.chosen, minlength=len(known.words)) + PRIOR_COUNT
    return lambda choices: np.log(counts / counts.sum())[choices.chosen]


def policy_law(known: Choices) -> Law | None:
    """The mean of the estimated policy; None where it cannot be estimated."""
    policy = policy_or_why(known, "")
    if isinstance(policy, str):
        return None
    if not isinstance(policy, xr.Dataset):
        return lambda choices: policy.log_probabilities(choices.memory, choices.chosen)
    logs = np.log(policy["q"].values)
    return lambda choices: logs[choices.states(), choices.chosen]


def last_interaction_law(known: Choices) -> Law | None:
    """The policy with memories of one interaction."""
    law = policy_law(known.recent(1))
    return None if law is None else lambda choices: law(choices.recent(1))


def law_with_errors(certain: Callable[[Choices], np.ndarray], known: Choices) -> Law:
    """The distribution `certain`, but any word with probability ε, which is the likeliest for the known choices."""
    given = certain(known)

    def cost(error: float) -> float:
        return -float(np.log((1 - error) * given + error / len(known.words)).sum())

    error = float(minimize_scalar(cost, bounds=(LEAST_ERROR, MOST_ERROR), method="bounded").x)
    return lambda choices: np.log((1 - error) * certain(choices) + error / len(choices.words))


def most_remembered(choices: Choices) -> np.ndarray:
    """Probability of each choice, where the words remembered most often are equally likely; all of them at first."""
    flat = choices.memory.reshape(len(choices.memory), -1)
    times = np.stack([(flat == word).sum(1) for word in range(len(choices.words))], axis=1)
    best = times == times.max(1, keepdims=True)
    return best[np.arange(len(best)), choices.chosen] / best.sum(1)


def of_the_inventory(choices: Choices) -> np.ndarray:
    """Probability of each choice, where the words of the inventory are equally likely; all words if it is empty.

    After a success the inventory holds its word alone; after a failure the partner's word is added, and the agent's
    own. Source: [001] Methods.
    """
    n_words = len(choices.words)
    inventories: dict[int, set[int]] = {}
    probability = np.empty(len(choices.chosen))
    last = choices.memory[:, -1].tolist()
    for k, (agent, (own, partner)) in enumerate(zip(choices.agent.tolist(), last, strict=True)):
        # An agent's memory at the start is empty, or has one word.
        inventory = inventories.get(agent, set())
        if own != NOTHING:
            inventory = inventories[agent] = {own} if own == partner else inventory | {own, partner}
        held = inventory or range(n_words)
        probability[k] = (choices.chosen[k] in held) / len(held)
    return probability


LAWS: dict[str, Callable[[Choices], Law | None]] = {
    "policy": policy_law,
    "constant frequencies": constant_law,
    "last interaction": last_interaction_law,
    "minimal naming game": partial(law_with_errors, of_the_inventory),
    "majority": partial(law_with_errors, most_remembered),
}
