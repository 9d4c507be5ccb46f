"""The memories whose measurement is expected to tell most about a goal.

Let g be the derivatives of the goal by q. A pair of mirror images adds G = g₁ Φ(e + o) + g₂ Φ(e - o) to the goal, with
o and e their odd and even part. To first order in the Gaussian errors of the parts, of standard deviations σ,

    G ≈ E G + d_o δ_o + d_e δ_e,    d = Cov(G, δ)/σ²,

so measuring pair i is expected to take (Σd)_i²/Σ_ii off the variance of the goal for each part of covariance Σ, besides
what of G is not linear. Pairs are taken one after the other, each given the choice of the ones before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from policy_extraction.measuring._active.marginal_likelihood import NOISE
from policy_extraction.measuring._active.posterior import Both
from policy_extraction.measuring._active.tails import NORMAL, Tails

MOST_COLUMNS = 2048  # pairs whose derivatives count
ABOUT = 0.1  # share of the criterion that goes to memories that are visited, whatever the derivatives
NODES = 16  # of quadrature in each part
ROWS = 1024  # pairs at once
NORMALS = (NORMAL, NORMAL)
XI, WEIGHTS = np.polynomial.hermite_e.hermegauss(NODES)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def next_pairs(
    posterior: Both,
    derivatives: np.ndarray,
    visited: np.ndarray,
    asked: np.ndarray,
    number: int,
    given: Sequence[int] = (),
    tails: tuple[Tails, Tails] = NORMALS,
) -> np.ndarray:
    """Numbers of the next pairs, the given ones first.

    Parameters
    ----------
    posterior
        The posterior of the probits.
    derivatives
        Of goals by the probability of the first word in memories and their mirror images, shape (k, P, 2); k may be 0.
    visited
        Share of agents in each memory, shape (P, 2).
    asked
        Whether a pair is measured, shape (P,).
    number
        Number of pairs, with the given ones, at most those left.
    given
        Pairs that are taken in any case.
    tails
        Those of the posterior.
    """
    about = moments(posterior, tails)
    linear, bent, _ = linearised(posterior, derivatives, about)
    pulls = [
        np.array([part.times(d, MOST_COLUMNS) for d in each]).reshape(each.shape)
        for part, each in zip(posterior, linear, strict=True)
    ]
    # A goal counts by the share of its variance, so that several goals are comparable.
    total = sum((d * pull).sum(1) for d, pull in zip(linear, pulls, strict=True)) + bent.sum(1)
    weights = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    spread = (visited**2 * about.variance).sum(1)
    alone = weights @ bent + ABOUT * spread / max(spread.sum(), np.finfo(float).tiny)
    variances = [part.variance for part in posterior]
    free, chosen, taken = ~asked, [], np.empty((2, number, len(asked)))
    for n in range(number):
        gain = alone.copy()  # what is not linear falls with the square of the errors
        for part, variance in zip(posterior, variances, strict=True):
            gain *= variance / part.variance
        for variance, pull in zip(variances, pulls, strict=True):
            gain += (weights[:, None] * pull**2).sum(0) / variance
        chosen.append(int(given[n]) if n < len(given) else int(np.argmax(np.where(free, gain, -1.0))))
        free[chosen[-1]] = False
        for j, part in enumerate(posterior):
            column = part.columns(np.array(chosen[-1:]))[:, 0] - taken[j, :n].T @ taken[j, :n, chosen[-1]]
            taken[j, n] = column / np.sqrt(max(column[chosen[-1]], np.finfo(float).tiny))
            pulls[j] = pulls[j] - np.outer(linear[j] @ taken[j, n], taken[j, n])
            variances[j] = np.maximum(variances[j] - taken[j, n] ** 2, 1e-12)
    return np.array(chosen, dtype=int)


class Moments(NamedTuple):
    """Of the first word's probabilities q in pairs with random parts.

    Parameters
    ----------
    slopes
        Cov(q, δ)/σ² for both parts, shape (2, P, 2).
    variance
        Of q, shape (P, 2).
    covariance
        Of the two memories of a pair, shape (P,).
    shift
        The mean of q relative to its median, shape (P, 2).
    """

    slopes: np.ndarray
    variance: np.ndarray
    covariance: np.ndarray
    shift: np.ndarray


def moments(posterior: Both, tails: tuple[Tails, Tails] = NORMALS) -> Moments:
    """Moments of the probabilities in all pairs, by quadrature."""
    blocks = [_moments(posterior, slice(i, i + ROWS), tails) for i in range(0, len(posterior.odd.mean), ROWS)]
    return Moments(*(np.concatenate(each, axis=int(each[0].ndim > 2)) for each in zip(*blocks, strict=True)))


def _moments(posterior: Both, some: slice, tails: tuple[Tails, Tails]) -> Moments:
    means = [part.mean[some, None, None] for part in posterior]
    spreads = [np.sqrt(part.variance[some, None, None]) for part in posterior]
    o, e = means[0] + spreads[0] * tails[0].of(XI)[:, None], means[1] + spreads[1] * tails[1].of(XI)
    e = e + posterior.coupling(o, posterior.even.every.doubt[some, None, None])
    q = np.stack([ndtr(e + o), ndtr(e - o)], axis=1)
    by_odd = np.einsum("njoe,o,e->jno", q, np.ones(NODES), WEIGHTS)
    by_even = np.einsum("njoe,o,e->jne", q, WEIGHTS, np.ones(NODES))
    mean = (by_odd @ WEIGHTS).T
    away = q - mean[..., None, None]
    second = np.einsum("njoe,nkoe,o,e->njk", away, away, WEIGHTS, WEIGHTS, optimize=True)
    slopes = [(by @ (WEIGHTS * XI)).T / spread[..., 0] for by, spread in zip((by_odd, by_even), spreads, strict=True)]
    median = ndtr(np.concatenate([means[1] + means[0], means[1] - means[0]], axis=1)[..., 0])
    variance = np.diagonal(second, axis1=1, axis2=2)
    return Moments(np.stack(slopes), variance, second[:, 0, 1], mean - median)


def linearised(posterior: Both, derivatives: np.ndarray, about: Moments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How goals with derivatives g (…, P, 2) depend on the parts.

    Returns d, shape (2, …, P); the variances of what is not linear; and the mean of the goal relative to its median.
    """
    d = np.stack([(derivatives * slopes).sum(-1) for slopes in about.slopes])
    variance = (derivatives**2 * about.variance).sum(-1) + 2 * derivatives.prod(-1) * about.covariance
    known = sum(each**2 * part.variance for part, each in zip(posterior, d, strict=True))
    return d, np.maximum(variance - known, 0), (derivatives * about.shift).sum(-1)


def shares(posterior: Both, derivatives: np.ndarray, tails: tuple[Tails, Tails] = NORMALS) -> np.ndarray:
    """Standard deviations (P,) of what single pairs add to a goal with these derivatives (P, 2)."""
    linear, bent, _ = linearised(posterior, derivatives, moments(posterior, tails))
    return np.sqrt(sum(d**2 * part.variance for part, d in zip(posterior, linear, strict=True)) + bent)


def expected_move(
    posterior: Both, derivatives: np.ndarray, batch: np.ndarray, tails: tuple[Tails, Tails] = NORMALS
) -> float:
    """The mean square by which measuring a batch of pairs moves a goal with these derivatives (P, 2), to first order.

    It is what the batch takes off the variance of the goal.
    """
    linear, bent, _ = linearised(posterior, derivatives, moments(posterior, tails))
    total = bent[batch].sum()
    for part, d in zip(posterior, linear, strict=True):
        told = part.times(d, MOST_COLUMNS)[batch]
        total += told @ np.linalg.solve(part.columns(batch)[batch] + NOISE * np.eye(len(batch)), told)
    return float(total)


def goal_variance(
    posterior: Both, derivatives: np.ndarray, tails: tuple[Tails, Tails] = NORMALS, off: float = 0.0
) -> float:
    """The mean square of a goal with these derivatives (P, 2) around a value, to first order in q.

    The goal at the median policy is `off` above this value.
    """
    linear, bent, shift = linearised(posterior, derivatives, moments(posterior, tails))
    known = sum(d @ part.times(d, MOST_COLUMNS) for part, d in zip(posterior, linear, strict=True))
    return float(known + bent.sum() + (shift.sum() + off) ** 2)
