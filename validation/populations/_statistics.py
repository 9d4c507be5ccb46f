"""Tests of a few real runs against many simulated ones, exact under discreteness, censoring and an uncertain policy.

Each test compares a statistic of the real runs with that of imitations: as many runs under the same conditions, all
simulated with the same policy drawn from the posterior. Its p-value is the share of imitations at least as far off, as
in a Monte Carlo test. So ties and runs cut at a fixed length need no correction, and an uncertain policy widens the
distribution of the imitations. Sources: Barnard 1963, J. R. Stat. Soc. B 25, 294; Rubin 1984, Ann. Stat. 12, 1151.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

AGREES, DISAGREES, TOO_FEW, NOT_SIMULATED = "agrees", "disagrees", "too few data", "not simulated"

Simulated = Sequence[np.ndarray]  # one array (policy draw, run) a condition
Real = Sequence[np.ndarray]  # one array (run,) a condition


def distribution_test(real: Real, simulated: Simulated, imitations: int, seed: int) -> tuple[float, float]:
    """Two-sample Kolmogorov-Smirnov distance of real from simulated values, and its p-value.

    With several conditions each value is first replaced by its mid-rank among those simulated under its condition.
    """
    ranked = [_mid_ranks(values, values) for values in simulated]
    values, weight = pooled(real, ranked)
    observed = np.concatenate([_mid_ranks(r, s) for r, s in zip(real, simulated, strict=True)])
    order = np.argsort(values, kind="stable")
    reference = values[order], np.cumsum(weight[order]) / weight.sum()
    statistic = _distance(observed[None], *reference)[0]
    return float(statistic), p_value_of(statistic, _distance(_imitate(ranked, real, imitations, seed), *reference))


def outcome_test(real: Real, simulated: Simulated, n_outcomes: int, imitations: int, seed: int) -> tuple[float, float]:
    """Deviance G of real from simulated outcomes (integers from 0), and its p-value; summed over conditions.

    G = 2 Σ_k n_k log(n_k / (n p_k)), with p_k the share of outcome k in the simulated runs of the condition.
    """
    shares = []
    for outcomes in simulated:
        times = np.bincount(outcomes.ravel(), minlength=n_outcomes)
        # An outcome that was never simulated is not impossible.
        shares.append((times + 0.5) / (outcomes.size + 0.5 * n_outcomes))
    ends = np.cumsum([len(runs) for runs in real])[:-1]
    statistic = _deviance([runs[None] for runs in real], shares)[0]
    imitated = _imitate(simulated, real, imitations, seed)
    return float(statistic), p_value_of(statistic, _deviance(np.split(imitated, ends, axis=1), shares))


def pooled(real: Real, simulated: Simulated) -> tuple[np.ndarray, np.ndarray]:
    """All simulated values, and weights by which each condition has as much as it has real runs."""
    weights = [np.full(s.size, len(r) / s.size) for r, s in zip(real, simulated, strict=True)]
    return np.concatenate([s.ravel() for s in simulated]), np.concatenate(weights)


def _deviance(samples: list[np.ndarray], shares: list[np.ndarray]) -> np.ndarray:
    """G of each row, summed over conditions; samples (rows, runs) of outcomes and shares (outcomes,) a condition."""
    total = np.zeros(len(samples[0]))
    for outcomes, share in zip(samples, shares, strict=True):
        for k, p in enumerate(share):
            times = (outcomes == k).sum(1)
            total += 2 * times * np.log(np.maximum(times, 1) / (outcomes.shape[1] * p))
    return total


def _imitate(simulated: Simulated, real: Real, imitations: int, seed: int) -> np.ndarray:
    """Values of imitated sets of runs, shape (draws · imitations of each, real runs)."""
    random = np.random.default_rng(seed)
    draws = simulated[0].shape[0]
    each = -(-imitations // draws)
    columns = []
    for values, runs in zip(simulated, real, strict=True):
        chosen = random.integers(values.shape[1], size=(draws, each, len(runs)))
        columns.append(np.take_along_axis(values[:, None, :], chosen, axis=2).reshape(draws * each, -1))
    return np.concatenate(columns, axis=1)


def _mid_ranks(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    ordered = np.sort(among, axis=None)
    return (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / (2 * ordered.size)


def _distance(samples: np.ndarray, ordered: np.ndarray, cumulated: np.ndarray) -> np.ndarray:
    """Largest difference between the distribution function of each row of samples and the reference's."""
    samples = np.sort(samples, axis=1)
    n = samples.shape[1]
    padded = np.concatenate([[0.0], cumulated])
    below = padded[np.searchsorted(ordered, samples, "left")]
    at = padded[np.searchsorted(ordered, samples, "right")]
    # Both functions are steps: the difference is greatest at a sample or just before one.
    ranks = np.arange(n + 1) / n
    return np.maximum((ranks[1:] - at).max(1), (below - ranks[:-1]).max(1))


def p_value_of(statistic: float, imitated: np.ndarray) -> float:
    return float((1 + (imitated >= statistic - 1e-12).sum()) / (1 + imitated.size))
