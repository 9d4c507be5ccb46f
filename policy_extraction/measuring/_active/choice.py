"""The memories whose measurement is expected to tell most about a goal.

Let g be the derivatives of the goal by q = Φ(z), with z Gaussian of mean m and covariance Σ. By Stein's lemma

    Cov(z_i, g·q) = Σ_j Σ_ij d_j,    d_j = g_j φ(m_j/r_j)/r_j,  r_j² = 1 + Σ_jj,

so measuring memory i is expected to take (Σd)_i²/Σ_ii off the variance of the goal, besides what q_i has that is not
linear in z_i. Memories are taken one after the other, each given the choice of the ones before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr, owens_t

from policy_extraction.measuring._active.posterior import NORMAL, Posterior
from policy_extraction.measuring._active.tails import Tails

MOST_COLUMNS = 2048  # memories whose derivatives count
ABOUT = 0.1  # share of the criterion that goes to memories that are visited, whatever the derivatives


def next_memories(
    posterior: Posterior,
    derivatives: np.ndarray,
    visited: np.ndarray,
    asked: np.ndarray,
    number: int,
    given: Sequence[int] = (),
    tails: Tails = NORMAL,
) -> np.ndarray:
    """Numbers of the next memories, the given ones first.

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
        Number of memories, with the given ones, at most those left.
    given
        Memories that are taken in any case.
    tails
        Those of the posterior.
    """
    linear, bent, _ = linearised(posterior, derivatives, tails)
    pulls = np.array([posterior.times(d, MOST_COLUMNS) for d in linear]).reshape(linear.shape)
    # A goal counts by the share of its variance, so that several goals are comparable.
    total = (linear * pulls).sum(1) + bent.sum(1)
    weights = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    variance = posterior.variance
    _, second, first = moments(posterior.mean, variance, tails)
    spread = visited**2 * (second - first**2)
    alone = weights @ bent + ABOUT * spread / max(spread.sum(), np.finfo(float).tiny)
    free, chosen, taken = ~asked, [], np.empty((number, len(asked)))
    for n in range(number):
        left = variance / posterior.variance  # what is not linear falls with its square
        gain = alone * left**2 + (weights[:, None] * pulls**2).sum(0) / variance
        chosen.append(int(given[n]) if n < len(given) else int(np.argmax(np.where(free, gain, -1.0))))
        free[chosen[-1]] = False
        column = posterior.columns(np.array(chosen[-1:]))[:, 0] - taken[:n].T @ taken[:n, chosen[-1]]
        taken[n] = column / np.sqrt(max(column[chosen[-1]], np.finfo(float).tiny))
        pulls = pulls - np.outer(linear @ taken[n], taken[n])
        variance = np.maximum(variance - taken[n] ** 2, 1e-12)
    return np.array(chosen, dtype=int)


def linearised(
    posterior: Posterior, derivatives: np.ndarray, tails: Tails = NORMAL
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How goals with derivatives g (…, S) depend on z.

    Returns d; the variances of what of g_i q_i is not linear in z_i; and the mean of g_i q_i relative to its median.
    """
    effect, second, first = moments(posterior.mean, posterior.variance, tails)
    bent = np.maximum(second - first**2 - effect**2 * posterior.variance, 0)
    return derivatives * effect, derivatives**2 * bent, derivatives * (first - ndtr(posterior.mean))


def goal_variance(posterior: Posterior, derivatives: np.ndarray, tails: Tails = NORMAL) -> float:
    """The mean square of a goal with these derivatives (S,) around its value at the median, to first order in q."""
    linear, bent, shift = linearised(posterior, derivatives, tails)
    return float(linear @ posterior.times(linear, MOST_COLUMNS) + bent.sum() + shift.sum() ** 2)


def moments(mean: np.ndarray, variance: np.ndarray, tails: Tails = NORMAL) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """E[dΦ/dz], E Φ(z)² and E Φ(z) for z of these means and variances (S,), averaged over the factors of the tails.

    For Gaussian z, E Φ(z)² = Φ(a) - 2 T(a, 1/√(1 + 2σ²)) with a = m/√(1 + σ²) and Owen's T.
    """
    effect, second, first = np.zeros((3, len(mean)))
    factors = tails.factors() if tails != NORMAL else np.ones(1)
    for factor in factors:
        spread = factor**2 * variance
        root = np.sqrt(1 + spread)
        at = mean / root
        effect += factor * np.exp(-(at**2) / 2) / np.sqrt(2 * np.pi) / root
        second += ndtr(at) - 2 * owens_t(at, 1 / np.sqrt(1 + 2 * spread))
        first += ndtr(at)
    return effect / len(factors), second / len(factors), first / len(factors)
