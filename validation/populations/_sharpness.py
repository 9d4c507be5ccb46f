"""Sharpness of the choices of each run and experiment, relative to all runs together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import bsr_array, csr_array
from scipy.special import ndtr, softmax

from meanfield.datasets import RealPopulations
from meanfield.toolbox import check_level
from validation.populations._choice_model import Cells, Tilts, limited, slopes
from validation.populations._empirical_policy import posterior
from validation.populations._experiment import ALIKE, Experiment, as_table

SPREADS = np.geomspace(0.02, 0.8, 9)  # of log β, between experiments and between runs; all equally likely
COMMON = 3.0  # standard deviation of the common log β: nothing is known of it
STEPS = 7  # of Newton's method
POINTS = 400  # of a distribution, within WIDTH standard deviations
WIDTH = 6.0


def sharpness(populations: RealPopulations, *, level: float = 0.95) -> pd.DataFrame:
    """The sharpness β of each experiment and each run: its choices follow q^β, normalised.

    β is a temperature factor: at β = 2 agents choose as at half the temperature. Only ratios are known, so the mean of
    log β over all choices is set to 0. The log β of a run is normal around its experiment's (runs that began
    alike), and the experiments' around a common one, both with spreads from 0.02 to 0.8, uniform in the logarithm.
    The policy q has the prior of `empirical_policy` and is unknown too, so a memory state that one run alone visits
    says nothing of its sharpness. The posterior is Laplace's approximation for each pair of spreads, summed over these.

    Parameters
    ----------
    populations
        As in `cross_validate`.
    level
        Probability of each interval.

    Returns
    -------
    DataFrame with a row for each experiment, then one for each run:

    - `model`, `pair`, `memory_length`; `of`, 'experiment' or 'run'; `experiment`, `n_agents`, `initial_consensus`,
      `committed_word`; `n_committed` and `run`, -1 for an experiment; `choices`;
    - `sharpness`, the posterior median of β, and its interval `low` to `high`.

    Raises
    ------
    InputError
        If the runs are not in order, a table is damaged, a number is out of range, or no policy can be tabulated.

    See Also
    --------
    one_policy : tests whether they differ

    Examples
    --------
    In the last four runs agents choose at half the temperature:

    >>> rng = np.random.default_rng(1)
    >>> table = pd.DataFrame({"run": np.repeat(range(8), 40), "step": np.tile(range(40), 8)})
    >>> table[["agent", "partner"]] = [rng.permutation(6)[:2] for _ in range(320)]
    >>> chance = np.where(table[["run"]] < 4, 0.7, 0.7**2 / (0.7**2 + 0.3**2))
    >>> table[["said", "heard"]] = np.where(rng.random((320, 2)) < chance, "A", "B")
    >>> found = validation.populations.sharpness(meanfield.datasets.from_events(table, memory_length=1))
    >>> found[["of", "run", "sharpness", "low", "high"]].round(1)
               of  run  sharpness  low  high
    0  experiment   -1        1.0  0.7   1.4
    1         run    0        0.8  0.5   1.1
    2         run    1        0.7  0.4   1.0
    3         run    2        0.7  0.4   1.0
    4         run    3        0.7  0.5   1.1
    5         run    4        1.7  1.2   2.4
    6         run    5        1.3  1.0   1.9
    7         run    6        1.5  1.0   2.0
    8         run    7        1.2  0.9   1.7
    """
    check_level(level)
    tails = {"sharpness": 0.5, "low": (1 - level) / 2, "high": (1 + level) / 2}
    rows: list[dict] = []
    for one in Experiment.all_of(populations, tabulable=True):
        posterior, runs = sharpness_posterior(one), one.runs.reset_index(drop=True)
        numbers = pd.DataFrame({name: np.exp(posterior.quantile(tail)) for name, tail in tails.items()})
        runs = runs.assign(**one.where, of="run", choices=np.bincount(one.run_of, minlength=len(runs)))
        alike = runs.groupby(one.alike(), sort=True)
        whole = alike[[*one.where, *ALIKE]].first()
        whole = whole.assign(of="experiment", n_committed=-1, run=-1, choices=alike["choices"].sum())
        columns = [*one.where, "of", *ALIKE, "n_committed", "run", "choices"]
        told = pd.concat([runs[columns], whole[columns]], ignore_index=True).join(numbers).to_dict("records")
        rows += told[len(runs) :] + told[: len(runs)]
    return as_table(rows, "sharpness", level=level)


class Posterior(NamedTuple):
    """Posterior of log β of all runs, then of all experiments, minus the mean over choices: a mixture of normals."""

    weight: np.ndarray  # (normal,)
    mean: np.ndarray  # (normal, run or experiment)
    deviation: np.ndarray  # (normal, run or experiment)

    def quantile(self, tail: float) -> np.ndarray:
        """(run or experiment,)"""
        low, high = (self.mean - WIDTH * self.deviation).min(0), (self.mean + WIDTH * self.deviation).max(0)
        values = np.linspace(low, high, POINTS)
        p = self.probability(values)
        return np.array([np.interp(tail, *pair) for pair in zip(p.T, values.T, strict=True)])

    def probability(self, values: np.ndarray) -> np.ndarray:
        """The probability that log β is less than values (…, run or experiment)."""
        below = ndtr((values[..., None, :] - self.mean) / self.deviation)
        return np.einsum("m,...mr->...r", self.weight, below)


def sharpness_posterior(experiment: Experiment) -> Posterior:
    """Posterior of all runs and experiments, from the choices."""
    choices, space = experiment.choices, experiment.space
    states, n_words = choices.states(), len(choices.words)
    n = choices.counts()
    alpha = posterior(n, space)[0]
    visited, state = np.unique(states, return_inverse=True)
    known, log_q = (alpha - n)[visited], np.log(alpha[visited] / alpha[visited].sum(1, keepdims=True))
    cells = Cells.group(experiment.run_of, state, choices.chosen, n_words)
    alike = experiment.alike()
    log_beta = np.zeros(len(alike))
    slope, information, free, bound = _quadratic(log_beta, log_q, cells, known)
    for _ in range(STEPS):
        weight, mean, _ = _effects(slope + information @ log_beta, information, alike)
        step = limited(weight @ mean[:, : len(alike)] - log_beta)
        change = limited(free - np.tensordot(step, bound, 1))
        log_q, log_beta = log_q + change, log_beta + step
        slope, information, free, bound = _quadratic(log_beta, log_q, cells, known)
    weight, mean, covariance = _effects(slope + information @ log_beta, information, alike)
    # Less the mean of runs, by their shares of the choices
    size = mean.shape[1]
    less = np.eye(size) - np.bincount(experiment.run_of, minlength=size) / max(1, len(states))
    variance = np.einsum("ij,mjk,ik->mi", less, covariance, less, optimize=True)
    return Posterior(weight, mean @ less.T, np.sqrt(np.maximum(variance, 1e-12)))


def _quadratic(log_beta: np.ndarray, log_q: np.ndarray, cells: Cells, known: np.ndarray) -> tuple[np.ndarray, ...]:
    """The log-likelihood near some log β (run,), where q follows them as is best; `known` are prior counts.

    Slope (run,) and Fisher's information (run, run); the change of log q (state, word) at fixed β, and the reduction of
    it (run, state, word) by a change of log β.
    """
    (n_states, n_words), n_runs = log_q.shape, len(log_beta)
    p = Tilts(np.exp(log_beta), np.zeros((n_runs, n_words))).probabilities(cells.unit, log_q[cells.state].T).T
    # Columns are log β of each run, then log q of each state and word.
    beta, run = (np.repeat(one, n_words) for one in (np.exp(log_beta)[cells.unit], cells.unit))
    entry = (n_runs + cells.state[:, None] * n_words + np.arange(n_words)).ravel()
    values, starts = np.stack([beta * log_q[cells.state].ravel(), beta], 1).ravel(), 2 * np.arange(len(run) + 1)
    columns, shape = np.stack([run, entry], 1).ravel(), (len(run), n_runs + log_q.size)
    design = csr_array((values, columns, starts), shape=shape)
    slope, curvature = slopes(design, p, cells.counts.T)
    cross = curvature[:n_runs, n_runs:].toarray()
    prior = np.exp(log_q)
    prior /= prior.sum(1, keepdims=True)
    strength = known.sum(1)
    pull = slope[n_runs:].reshape(log_q.shape) + known - strength[:, None] * prior
    # Parameters that only add a constant to log q are held fixed: they carry no information.
    stiff = strength[:, None, None] * (prior[:, :, None] * (np.eye(n_words) - prior[:, None, :])) + 1 / n_words
    blocks = bsr_array((stiff, np.arange(n_states), np.arange(n_states + 1))) + curvature[n_runs:, n_runs:]
    stiff = blocks.tobsr((n_words, n_words)).data
    free = np.linalg.solve(stiff, pull[:, :, None])[:, :, 0]
    bound = np.linalg.solve(stiff, np.moveaxis(cross.reshape(n_runs, n_states, n_words), 0, 2))
    bound = np.moveaxis(bound, 2, 0)
    information = curvature[:n_runs, :n_runs].toarray() - cross @ bound.reshape(n_runs, -1).T
    return slope[:n_runs] - cross @ free.ravel(), (information + information.T) / 2, free, bound


def _effects(pull: np.ndarray, information: np.ndarray, alike: np.ndarray) -> tuple[np.ndarray, ...]:
    """Weights, means and covariances of log β of runs, then experiments, for each pair of spreads."""
    experiments = np.eye(alike.max() + 1)
    of = np.concatenate([experiments[alike], experiments])
    size, n_runs = len(of), len(alike)
    within = np.diag(np.arange(size) < n_runs).astype(float)
    M, h = np.zeros((size, size)), np.zeros(size)
    M[:n_runs, :n_runs], h[:n_runs] = information, pull
    prior = np.array([a**2 * within + b**2 * of @ of.T + COMMON**2 for a in SPREADS for b in SPREADS])
    # (M + 1/K)^-1, also where M is singular
    both = np.eye(size) + prior @ M
    covariance = np.linalg.solve(both, prior)
    mean = covariance @ h
    evidence = 0.5 * mean @ h - 0.5 * np.linalg.slogdet(both)[1]
    return softmax(evidence), mean, covariance
