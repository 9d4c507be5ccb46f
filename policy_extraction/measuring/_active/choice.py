"""The memories whose measurement is expected to tell most about a goal.

Let g be the derivatives of the goal by q = Φ(z), with z Gaussian of mean m and covariance Σ. By Stein's lemma

    Cov(z_i, g·q) = Σ_j Σ_ij d_j,    d_j = g_j φ(m_j/r_j)/r_j,  r_j² = 1 + Σ_jj,

so measuring memory i is expected to take (Σd)_i²/Σ_ii off the variance of the goal, besides what q_i has that is not
linear in z_i. Memories are taken one after the other, each given the choice of the ones before.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, owens_t

from policy_extraction.measuring._active.posterior import Posterior

MOST_COLUMNS = 2048  # memories whose derivatives count
ABOUT = 0.1  # share of the criterion that goes to memories that are visited, whatever the derivatives


def next_memories(
    posterior: Posterior, derivatives: np.ndarray, visited: np.ndarray, asked: np.ndarray, number: int
) -> np.ndarray:
    """Numbers of the next memories.

    Parameters
    ----------
    posterior
        The posterior of the probits.
    derivatives
        Of goals by the probability of the first word, shape (k, S); k may be 0.
    visited
        Share of agents in each memory, shape (S,).
    asked
        Whether a memory is measured, shape (S,).
    number
        Number of memories to choose, at most those left.
    """
    linear, bent = linearised(posterior, derivatives)
    pulls = np.array([posterior.times(d, MOST_COLUMNS) for d in linear]).reshape(linear.shape)
    # A goal counts by the share of its variance, so that several goals are comparable.
    total = (linear * pulls).sum(1) + bent.sum(1)
    weights = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    variance = posterior.variance
    spread = visited**2 * variance_of_choice(posterior.mean, variance)
    alone = weights @ bent + ABOUT * spread / max(spread.sum(), np.finfo(float).tiny)
    free, chosen, taken = ~asked, [], np.empty((number, len(asked)))
    for n in range(number):
        left = variance / posterior.variance  # what is not linear falls with its square
        gain = alone * left**2 + (weights[:, None] * pulls**2).sum(0) / variance
        chosen.append(int(np.argmax(np.where(free, gain, -1.0))))
        free[chosen[-1]] = False
        column = posterior.columns(np.array(chosen[-1:]))[:, 0] - taken[:n].T @ taken[:n, chosen[-1]]
        taken[n] = column / np.sqrt(max(column[chosen[-1]], np.finfo(float).tiny))
        pulls = pulls - np.outer(linear @ taken[n], taken[n])
        variance = np.maximum(variance - taken[n] ** 2, 1e-12)
    return np.array(chosen, dtype=int)


def linearised(posterior: Posterior, derivatives: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """d by which goals depend on z, and the variances of what of g_i q_i is not linear in z_i; shapes (k, S)."""
    root = np.sqrt(1 + posterior.variance)
    effect = np.exp(-((posterior.mean / root) ** 2) / 2) / np.sqrt(2 * np.pi) / root
    spread = variance_of_choice(posterior.mean, posterior.variance)
    return derivatives * effect, derivatives**2 * np.maximum(spread - effect**2 * posterior.variance, 0)


def goal_variance(posterior: Posterior, derivatives: np.ndarray) -> float:
    """The variance of a goal with these derivatives (S,), to first order in q."""
    linear, bent = linearised(posterior, derivatives)
    return float(linear @ posterior.times(linear, MOST_COLUMNS) + bent.sum())


def variance_of_choice(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Var Φ(z) of Gaussian z, from E Φ(z)² = Φ(a) - 2 T(a, 1/√(1 + 2σ²)) with a = m/√(1 + σ²) and Owen's T."""
    at = mean / np.sqrt(1 + variance)
    first = ndtr(at)
    return np.maximum(first - 2 * owens_t(at, 1 / np.sqrt(1 + 2 * variance)) - first**2, 0)
