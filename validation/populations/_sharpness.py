"""How sharp the choices of each run and experiment are, beside those of all runs together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from meanfield import InputError
from meanfield.datasets import RealPopulations
from meanfield.toolbox import real_number
from validation.populations._choices import ordered_subjects
from validation.populations._empirical_policy import posterior_mean
from validation.populations._schedule import Schedule
from validation.populations._subject import Row
from validation.populations._tilts import Cells

LOGS = np.linspace(-3, 3, 121)  # log β; prior and likelihood vanish before the ends, or nothing is known
SPREADS = np.geomspace(0.01, 1, 12)  # of log β, between experiments and between runs; all equally likely
PIECES = 50  # of a run, between which its sharpness may change
CONDITION = ["experiment", "n_agents", "initial_consensus", "committed_word"]


def sharpness(populations: RealPopulations, *, level: float = 0.95) -> pd.DataFrame:
    """The sharpness β of each experiment and each run: its choices follow q^β, normalised, with q that of all runs.

    β is a temperature factor: at β = 2 the agents choose as at half the temperature. A hierarchy of random effects keeps
    few choices from looking like a difference: log β of a run is normal around that of its experiment, and those of
    experiments are normal around 0. Both spreads have broad priors. The posterior is summed over a grid, without
    approximation; q is the estimate from all runs (as in `empirical_policy`) and is held. Each run is also compared with
    the possibility that its sharpness changed once, at any time, to another value of the same prior.

    Parameters
    ----------
    populations
        Runs in order: `meanfield.datasets.ai_norms(ordered=True)` or `meanfield.datasets.from_events`.
    level
        Probability of each interval.

    Returns
    -------
    DataFrame with a row for each experiment, then one for each run: `model`, `pair`, `memory_length`; `of`
    ('experiment' or 'run'), `experiment`, `n_agents`, `initial_consensus`, `committed_word`, `n_committed` and `run` (-1
    for an experiment); `choices`; `sharpness`, the posterior median of β, and its interval `low` to `high`; for a run
    `p_change`, the posterior probability that it changed (even odds before), the most probable `change` (step of an
    interaction), and the sharpness `before` and `after` it (means of the posterior).

    Raises
    ------
    InputError
        If the runs are not in order, a table is damaged, a number is out of range, or no policy can be tabulated.

    See Also
    --------
    one_policy : tests whether they differ
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
    pieces = _log_likelihoods(schedule)
    posterior = _posterior(pieces.sum(1), schedule.experiment)
    runs, run_of = schedule.runs, schedule.run_of
    choices = np.bincount(run_of, minlength=len(runs))
    rows: list[Row] = []
    for number in range(len(posterior.experiments)):
        here = schedule.experiment == number
        row = runs[here].iloc[0]
        told = {"of": "experiment"} | {name: row[name] for name in CONDITION} | {"n_committed": -1, "run": -1}
        numbers = {"choices": int(choices[here].sum())} | _summary(posterior.experiments[number], level)
        rows.append(told | numbers | dict.fromkeys(("p_change", "before", "after"), np.nan) | {"change": -1})
    for number, row in enumerate(runs.to_dict("records")):
        told = {"of": "run"} | {name: row[name] for name in (*CONDITION, "n_committed", "run")}
        numbers = {"choices": int(choices[number])} | _summary(posterior.runs[number], level)
        steps = schedule.step_of[run_of == number]
        rows.append(told | numbers | _change(pieces[number], posterior.priors[number], steps))
    return rows


def _log_likelihoods(schedule: Schedule) -> np.ndarray:
    """Of the choices in each piece of a run, (run, piece, log β)."""
    states, n_words = schedule.states(), len(schedule.words)
    chosen = schedule.said.ravel()[schedule.free]
    n = np.bincount(states * n_words + chosen, minlength=schedule.space.n_states * n_words).reshape(-1, n_words)
    log_q = np.log(posterior_mean(n.astype(float), schedule.space)[0])
    unit = schedule.run_of * PIECES + _pieces(schedule.run_of)
    cells = Cells.group(unit, states, chosen, n_words)
    logs, total = log_q[cells.state].T.copy(), cells.counts.sum(0)
    said = (cells.counts * logs).sum(0)
    found = np.empty((len(schedule.runs) * PIECES, len(LOGS)))
    for k, beta in enumerate(np.exp(LOGS)):
        powers = beta * logs
        most = powers.max(0)
        normal = most + np.log(np.exp(powers - most).sum(0))
        found[:, k] = np.bincount(cells.unit, beta * said - total * normal, minlength=len(found))
    return found.reshape(-1, PIECES, len(LOGS))


def _pieces(run_of: np.ndarray) -> np.ndarray:
    """Number of the piece of its run, from 0, of each choice; pieces have equally many."""
    length = np.bincount(run_of)
    place = np.arange(len(run_of)) - (np.cumsum(length) - length)[run_of]
    return place * PIECES // length[run_of]


class _Posterior(NamedTuple):
    """Distributions over LOGS of each experiment and run, and of each run as the others foretell it."""

    experiments: np.ndarray
    runs: np.ndarray
    priors: np.ndarray


def _posterior(log_likelihood: np.ndarray, experiment: np.ndarray) -> _Posterior:
    """From log-likelihoods (run, log β) and the experiment (run,) of each run."""
    likelihood = np.exp(log_likelihood - log_likelihood.max(1, keepdims=True))
    kernels = [_normal(LOGS[:, None], LOGS, spread) for spread in SPREADS]  # (centre, log β)
    tops = np.log([_normal(0, LOGS, spread) for spread in SPREADS])  # (spread, centre)
    given, weights = [], []
    for kernel in kernels:
        known = likelihood @ kernel.T  # (run, centre)
        joint = np.zeros((experiment.max() + 1, len(LOGS)))
        np.add.at(joint, experiment, np.log(known))
        each = joint + tops[:, None]  # (spread, experiment, centre)
        evidence = logsumexp(each, axis=2)
        given.append((known, np.exp(each - evidence[:, :, None])))
        weights.append(evidence.sum(1))
    weight = np.exp(np.array(weights) - logsumexp(weights))  # (spread between runs, spread between experiments)
    experiments = np.zeros((experiment.max() + 1, len(LOGS)))
    priors = np.zeros(likelihood.shape)
    for kernel, (known, centres), w in zip(kernels, given, weight, strict=True):
        mixed = np.tensordot(w, centres, 1)
        experiments += mixed
        # Without the run's own evidence on its experiment
        priors += (mixed[experiment] / known) @ kernel
    priors /= priors.sum(1, keepdims=True)
    runs = likelihood * priors
    return _Posterior(experiments, runs / runs.sum(1, keepdims=True), priors)


def _normal(mean: np.ndarray | float, values: np.ndarray, spread: float) -> np.ndarray:
    """Normal probabilities on a grid, none of them 0."""
    logs = np.maximum(-0.5 * ((values - mean) / spread) ** 2, -600.0)
    p = np.exp(logs)
    return p / p.sum(-1, keepdims=True)


def _summary(p: np.ndarray, level: float) -> Row:
    tails = (0.5, (1 - level) / 2, (1 + level) / 2)
    middle, low, high = (float(np.exp(quantile(p, tail))) for tail in tails)
    return {"sharpness": middle, "low": low, "high": high}


def quantile(p: np.ndarray, tail: float) -> float:
    """Of a distribution over LOGS, each value spread evenly over its cell of the grid."""
    edges = np.append(LOGS - (LOGS[1] - LOGS[0]) / 2, LOGS[-1] + (LOGS[1] - LOGS[0]) / 2)
    return float(np.interp(tail, np.append(0, np.cumsum(p)), edges))


def _change(pieces: np.ndarray, prior: np.ndarray, steps: np.ndarray) -> Row:
    """One change between pieces (piece, log β) of a run against none, with even odds."""
    if not len(steps):
        return {"p_change": np.nan, "change": -1, "before": np.nan, "after": np.nan}
    logs = np.log(np.maximum(prior, np.finfo(float).tiny))
    until = np.cumsum(pieces, axis=0)
    before, after = until[:-1] + logs, until[-1] - until[:-1] + logs
    changed = logsumexp(before, axis=1) + logsumexp(after, axis=1)
    without = logsumexp(until[-1] + logs)
    best = int(np.argmax(changed))
    odds = logsumexp(changed) - np.log(len(changed)) - without
    means = [float(np.exp((np.exp(one - logsumexp(one)) * LOGS).sum())) for one in (before[best], after[best])]
    at = min((best + 1) * len(steps) // PIECES, len(steps) - 1)
    return {"p_change": float(1 / (1 + np.exp(-odds))), "change": int(steps[at]), "before": means[0], "after": means[1]}
