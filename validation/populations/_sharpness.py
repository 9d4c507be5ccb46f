"""How sharp the choices of each run and experiment are, beside those of all runs together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr

from meanfield import InputError
from meanfield.datasets import RealPopulations
from meanfield.toolbox import real_number
from validation.populations._choices import ordered_subjects
from validation.populations._empirical_policy import posterior_counts
from validation.populations._schedule import Schedule
from validation.populations._subject import Row
from validation.populations._tilts import Cells, Tilts, numbered

SPREADS = np.geomspace(0.02, 0.8, 9)  # of log β, between experiments and between runs; all equally likely
COMMON = 3.0  # standard deviation of the common log β, of which nothing is known
STEPS = 7  # of Newton's method
LARGEST_STEP = 0.5
POINTS = 400  # of a distribution, within WIDTH standard deviations
WIDTH = 6.0
ALIKE = ["experiment", "n_agents", "initial_consensus", "committed_word"]


def sharpness(populations: RealPopulations, *, level: float = 0.95) -> pd.DataFrame:
    """The sharpness β of each experiment and each run: its choices follow q^β, normalised.

    β is a temperature factor: at β = 2 agents choose as at half the temperature. Only ratios are known, so the mean of
    log β over all choices is set to 0. Random effects keep few choices from looking like a difference. The log β of a
    run is normal around that of its experiment, and those of experiments (runs that began alike) are normal around a
    common one, both with spreads from 0.02 to 0.8 (uniform in the logarithm). The policy q has the prior of
    `empirical_policy` and is unknown too, so a memory state that one run alone visits says nothing of its sharpness.
    The posterior is Laplace's approximation for each pair of spreads, summed over these.

    Parameters
    ----------
    populations
        Runs in order: `meanfield.datasets.ai_norms(ordered=True)` or `meanfield.datasets.from_events`.
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
    level = real_number("level", level, above=0, below=1)
    rows: list[Row] = []
    reason = ""
    for subject, runs, events in ordered_subjects(populations):
        try:
            schedule = Schedule.read(runs, events)
        except InputError as error:
            reason = f"{error}"
            continue
        where = {"model": subject[0], "pair": subject[1].replace("_", "/"), "memory_length": subject[2]}
        rows += [where | row for row in _rows(schedule, level)]
    if not rows:
        raise InputError(f"populations: {reason}")
    result = pd.DataFrame(rows)
    result.attrs = {"kind": "sharpness", "level": level}
    return result


def _rows(schedule: Schedule, level: float) -> list[Row]:
    runs, experiment = schedule.runs, schedule.experiment
    choices = np.bincount(schedule.run_of, minlength=len(runs))
    posterior = sharpness_posterior(schedule)
    tails = (0.5, (1 - level) / 2, (1 + level) / 2)
    numbers = np.exp([posterior.quantile(tail) for tail in tails])
    rows: list[Row] = []
    for number, row in enumerate(runs.to_dict("records")):
        told = {name: row[name] for name in (*ALIKE, "n_committed", "run")}
        rows.append({"of": "run"} | told | {"choices": int(choices[number])})
    experiments: list[Row] = []
    for number in range(experiment.max() + 1):
        here = experiment == number
        told = {name: runs.loc[here, name].iloc[0] for name in ALIKE}
        everything = {"n_committed": -1, "run": -1, "choices": int(choices[here].sum())}
        experiments.append({"of": "experiment"} | told | everything)
    for row, (middle, low, high) in zip([*rows, *experiments], numbers.T, strict=True):
        row |= {"sharpness": float(middle), "low": float(low), "high": float(high)}
    return [*experiments, *rows]


class Posterior(NamedTuple):
    """Posterior of log β of all runs, then of all experiments, less the mean over choices: a mixture of normals."""

    weight: np.ndarray  # (normal,)
    mean: np.ndarray  # (normal, run or experiment)
    deviation: np.ndarray  # (normal, run or experiment)

    def quantile(self, tail: float) -> np.ndarray:
        """(run or experiment,)"""
        values = self._values()
        p = self.probability(values)
        return np.array([np.interp(tail, *pair) for pair in zip(p.T, values.T, strict=True)])

    def probability(self, values: np.ndarray) -> np.ndarray:
        """That log β is less than values (…, run or experiment)."""
        below = ndtr((values[..., None, :] - self.mean) / self.deviation)
        return np.einsum("m,...mr->...r", self.weight, below)

    def _values(self) -> np.ndarray:
        low, high = (self.mean - WIDTH * self.deviation).min(0), (self.mean + WIDTH * self.deviation).max(0)
        return np.linspace(low, high, POINTS)


def sharpness_posterior(schedule: Schedule) -> Posterior:
    """Posterior of all runs and experiments, from a schedule's real choices."""
    states, n_words = schedule.states(), len(schedule.words)
    chosen = schedule.said.ravel()[schedule.free]
    n = np.bincount(states * n_words + chosen, minlength=schedule.space.n_states * n_words).reshape(-1, n_words)
    alpha = posterior_counts(n.astype(float), schedule.space)[0]
    state, _ = numbered(states)
    visited = np.unique(states)
    known = (alpha - n)[visited]
    log_q = np.log(alpha[visited] / alpha[visited].sum(1, keepdims=True))
    cells = Cells.group(schedule.run_of, state, chosen, n_words)
    experiments = np.eye(schedule.experiment.max() + 1)[schedule.experiment]
    log_beta = np.zeros(len(schedule.runs))
    near = _quadratic(log_beta, log_q, cells, known)
    effects = _effects(near, log_beta, experiments)
    for _ in range(STEPS):
        step = np.clip(effects.weight @ effects.mean[:, : len(log_beta)] - log_beta, -LARGEST_STEP, LARGEST_STEP)
        log_q = log_q + near.answer(step)
        log_beta = log_beta + step
        near = _quadratic(log_beta, log_q, cells, known)
        effects = _effects(near, log_beta, experiments)
    share = np.bincount(schedule.run_of, minlength=len(log_beta)) / max(1, len(schedule.run_of))
    return effects.relative_to(share)


class _Quadratic(NamedTuple):
    """The log-likelihood near some log β (run,), where q follows them as is best."""

    slope: np.ndarray  # (run,)
    information: np.ndarray  # (run, run)
    free: np.ndarray  # (state, word), change of log q at fixed β
    bound: np.ndarray  # (run, state, word), what a change of log β takes from it

    def answer(self, step: np.ndarray) -> np.ndarray:
        """The change of log q (state, word) for a step of log β."""
        change = self.free - np.tensordot(step, self.bound, 1)
        return np.clip(change, -LARGEST_STEP, LARGEST_STEP)


def _quadratic(log_beta: np.ndarray, log_q: np.ndarray, cells: Cells, known: np.ndarray) -> _Quadratic:
    """Slopes and Fisher's information of log β and log q jointly; log q is eliminated. `known` are prior counts."""
    (n_states, n_words), n_runs = log_q.shape, len(log_beta)
    beta, logs = np.exp(log_beta)[cells.unit], log_q[cells.state].T.copy()
    p = Tilts(np.exp(log_beta), np.zeros((n_runs, n_words))).probabilities(cells.unit, logs)
    total = cells.counts.sum(0)
    centred = logs - (p * logs).sum(0)
    slope = np.bincount(cells.unit, beta * (cells.counts * centred).sum(0), minlength=n_runs)
    own = np.bincount(cells.unit, total * beta**2 * (p * centred**2).sum(0), minlength=n_runs)

    prior = np.exp(log_q)
    prior /= prior.sum(1, keepdims=True)
    strength = known.sum(1)
    pull = known - strength[:, None] * prior
    # What only adds a constant to log q is no information; it is kept from changing.
    stiff = strength[:, None, None] * (prior[:, :, None] * (np.eye(n_words) - prior[:, None, :])) + 1 / n_words
    cross = np.zeros((n_runs, n_states, n_words))
    for word in range(n_words):
        pull[:, word] += np.bincount(cells.state, beta * (cells.counts[word] - total * p[word]), minlength=n_states)
        cross[cells.unit, cells.state, word] = total * beta**2 * p[word] * centred[word]
        for other in range(n_words):
            both = total * beta**2 * p[word] * ((word == other) - p[other])
            stiff[:, word, other] += np.bincount(cells.state, both, minlength=n_states)
    free = np.linalg.solve(stiff, pull[:, :, None])[:, :, 0]
    bound = np.moveaxis(np.linalg.solve(stiff, np.moveaxis(cross, 0, 2)), 2, 0)
    flat = cross.reshape(n_runs, -1)
    information = np.diag(own) - flat @ bound.reshape(n_runs, -1).T
    return _Quadratic(slope - flat @ free.ravel(), (information + information.T) / 2, free, bound)


class _Effects(NamedTuple):
    """Posterior of log β of runs and experiments, for each pair of spreads."""

    weight: np.ndarray  # (pair,)
    mean: np.ndarray  # (pair, run or experiment)
    covariance: list[np.ndarray]  # (run or experiment, run or experiment)

    def relative_to(self, share: np.ndarray) -> Posterior:
        """Less the mean of runs with these shares (run,)."""
        size = self.mean.shape[1]
        less = np.eye(size) - np.append(share, np.zeros(size - len(share)))
        deviation = [np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", less, C, less), 1e-12)) for C in self.covariance]
        return Posterior(self.weight, self.mean @ less.T, np.array(deviation))


def _effects(near: _Quadratic, log_beta: np.ndarray, experiments: np.ndarray) -> _Effects:
    """`experiments` (run, experiment) are indicators."""
    M = near.information
    h = near.slope + M @ log_beta
    eye = np.eye(len(M))
    evidences, means, covariances = [], [], []
    for between_runs in SPREADS:
        for between in SPREADS:
            # Prior covariances of runs, of experiments with runs, and of experiments
            across = between**2 * experiments.T + COMMON**2
            top = between**2 * np.eye(len(across)) + COMMON**2
            K = between_runs**2 * eye + experiments @ across
            # (M + 1/K)^-1, also where M is singular
            both = eye + K @ M
            C = np.linalg.solve(both, K)
            mean = C @ h
            evidences.append(0.5 * h @ mean - 0.5 * np.linalg.slogdet(both)[1])
            # Of the experiments, given the runs
            gain = np.linalg.solve(K, across.T).T
            rest = top - gain @ across.T
            up = gain @ C
            means.append(np.append(mean, gain @ mean))
            covariances.append(np.block([[C, up.T], [up, up @ gain.T + rest]]))
    weight = np.exp(np.array(evidences) - max(evidences))
    return _Effects(weight / weight.sum(), np.array(means), covariances)
