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
from policy_extraction.measuring._active.noisy import Joint
from policy_extraction.measuring._active.tails import NORMAL, Tails

MOST_COLUMNS = 2048  # pairs whose derivatives count
ABOUT = 0.1  # share of the criterion that goes to memories that are visited, whatever the derivatives
NODES = 16  # of quadrature in each part
ROWS = 1024  # pairs at once
MOST_ALIKE = 0.9999  # correlation of a pair's parts
LITTLE = 1e-12  # variance
NORMALS = (NORMAL, NORMAL)
XI, WEIGHTS = np.polynomial.hermite_e.hermegauss(NODES)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def next_pairs(
    posterior: Joint,
    derivatives: np.ndarray,
    visited: np.ndarray,
    free: np.ndarray,
    number: int,
    given: Sequence[int] = (),
    tails: tuple[Tails, Tails] = NORMALS,
    noise: np.ndarray | None = None,
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
    free
        Whether a pair can be chosen, shape (P,).
    number
        Number of pairs, with the given ones; without `noise` at most those that are free.
    given
        Pairs that are taken in any case.
    tails
        Those of the posterior.
    noise
        Covariances (P, 2, 2) of a measurement's errors in the two parts, after which a pair can be chosen again. None
        for measurements without errors.
    """
    about = moments(posterior, tails)
    linear, bent, _ = linearised(posterior, derivatives, about)
    pulls = np.array([posterior.times(d, MOST_COLUMNS) for d in np.moveaxis(linear, 1, 0)]).reshape(-1, 2, len(free))
    # A goal counts by the share of its variance, so that several goals are comparable.
    total = (np.moveaxis(linear, 1, 0) * pulls).sum((1, 2)) + bent.sum(1)
    weights = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    spread = (visited**2 * about.variance).sum(1)
    alone = weights @ bent + ABOUT * spread / max(spread.sum(), np.finfo(float).tiny)
    before = within(posterior)
    left, errors = before.copy(), np.broadcast_to(NOISE * np.eye(2), before.shape) if noise is None else noise
    free, chosen, taken = free.copy(), [], np.empty((2 * number, 2, len(free)))
    for n in range(number):
        gain = alone.copy()  # what is not linear falls with the square of the errors
        for j in range(2):
            gain *= left[:, j, j] ** 2 / ((left[:, j, j] + errors[:, j, j]) * before[:, j, j])
        gain += weights @ _told(pulls, left + errors)
        chosen.append(int(given[n]) if n < len(given) else int(np.argmax(np.where(free, gain, -1.0))))
        i = chosen[-1]
        free[i] = noise is not None
        before_it = taken[: 2 * n]
        columns = posterior.columns(np.array([i]))[..., 0] - np.tensordot(before_it, before_it[:, :, i], (0, 0))
        new = np.einsum("jpk,lk->ljp", columns, np.linalg.inv(np.linalg.cholesky(columns[:, i] + errors[i])))
        taken[2 * n : 2 * n + 2] = new
        pulls = pulls - np.tensordot(np.tensordot(linear, new, ((0, 2), (1, 2))), new, 1)
        left = left - np.einsum("ljp,lkp->pjk", new, new)
        left[:, range(2), range(2)] = np.maximum(left[:, range(2), range(2)], LITTLE)
    return np.array(chosen, dtype=int)


def within(posterior: Joint) -> np.ndarray:
    """Covariances of the two parts of each pair, shape (P, 2, 2)."""
    odd, even = (part.variance for part in posterior)
    return np.stack([odd, posterior.between, posterior.between, even], axis=1).reshape(-1, 2, 2)


def _told(pulls: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Reduction of the goals' variances by measuring each pair, from covariances of goal and parts (k, 2, P)."""
    odd, even, between = covariance[:, 0, 0], covariance[:, 1, 1], covariance[:, 0, 1]
    told = even * pulls[:, 0] ** 2 - 2 * between * pulls[:, 0] * pulls[:, 1] + odd * pulls[:, 1] ** 2
    return told / np.maximum(odd * even - between**2, LITTLE**2)


class Moments(NamedTuple):
    """Moments of the first word's probabilities q in pairs with random parts.

    Parameters
    ----------
    slopes
        Of the regression of q on both parts, Cov(q, δ)/σ² where these are independent, shape (2, P, 2).
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


def moments(posterior: Joint, tails: tuple[Tails, Tails] = NORMALS) -> Moments:
    """Moments of the probabilities in all pairs, by quadrature."""
    n = len(posterior.odd.mean)
    blocks = [_moments(posterior, np.arange(i, min(i + ROWS, n)), tails) for i in range(0, n, ROWS)]
    return Moments(*(np.concatenate(each, axis=int(each[0].ndim > 2)) for each in zip(*blocks, strict=True)))


def choices_at_nodes(posterior: Joint, some: np.ndarray, tails: tuple[Tails, Tails] = NORMALS) -> np.ndarray:
    """Probabilities of the first word in some pairs (n,) at the nodes of odd and even part, shape (n, 2, NODES, NODES).

    The even part's error is that of the odd one, as far as they are alike, and one of its own, which has the nodes.
    """
    (o, e), spreads = ([part.mean[some, None, None] for part in posterior], _spreads(posterior, some))
    same, own = _alike(posterior, some)
    o = o + spreads[0] * tails[0].of(XI)[:, None]
    e = e + spreads[1] * tails[1].of(same * XI[:, None] + own * XI if same.any() else XI)
    e = e + posterior.coupling(o, posterior.even.every.doubt[some, None, None])
    return np.stack([ndtr(e + o), ndtr(e - o)], axis=1)


def _spreads(posterior: Joint, some: np.ndarray) -> list[np.ndarray]:
    return [np.sqrt(part.variance[some, None, None]) for part in posterior]


def _alike(posterior: Joint, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Correlation of the parts in some pairs, and how much is left of the even one given the odd one."""
    odd, even = _spreads(posterior, some)
    same = np.clip(posterior.between[some, None, None] / (odd * even), -MOST_ALIKE, MOST_ALIKE)
    return same, np.sqrt(1 - same**2)


def _moments(posterior: Joint, some: np.ndarray, tails: tuple[Tails, Tails]) -> Moments:
    q = choices_at_nodes(posterior, some, tails)
    by_odd = np.einsum("njoe,o,e->jno", q, np.ones(NODES), WEIGHTS)
    by_even = np.einsum("njoe,o,e->jne", q, WEIGHTS, np.ones(NODES))
    mean = (by_odd @ WEIGHTS).T
    away = q - mean[..., None, None]
    second = np.einsum("njoe,nkoe,o,e->njk", away, away, WEIGHTS, WEIGHTS, optimize=True)
    first, rest = ((by @ (WEIGHTS * XI)).T for by in (by_odd, by_even))
    same, own, odd, even = (each[..., 0] for each in (*_alike(posterior, some), *_spreads(posterior, some)))
    slopes = np.stack([(first - rest * same / own) / odd, rest / (own * even)])
    variance = np.diagonal(second, axis1=1, axis2=2)
    return Moments(slopes, variance, second[:, 0, 1], mean - ndtr(posterior.median()[some]))


def linearised(posterior: Joint, derivatives: np.ndarray, about: Moments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How goals with derivatives g (…, P, 2) depend on the parts.

    Returns d, shape (2, …, P); the variances of what is not linear; and the mean of the goal relative to its median.
    """
    d = np.stack([(derivatives * slopes).sum(-1) for slopes in about.slopes])
    variance = (derivatives**2 * about.variance).sum(-1) + 2 * derivatives.prod(-1) * about.covariance
    return d, np.maximum(variance - _known(posterior, d), 0), (derivatives * about.shift).sum(-1)


def _known(posterior: Joint, d: np.ndarray) -> np.ndarray:
    """Variances (…, P) of what pairs add to a linear goal."""
    alone = sum(each**2 * part.variance for part, each in zip(posterior, d, strict=True))
    return alone + 2 * d[0] * d[1] * posterior.between


def shares(posterior: Joint, derivatives: np.ndarray, tails: tuple[Tails, Tails] = NORMALS) -> np.ndarray:
    """Standard deviations (P,) of what single pairs add to a goal with these derivatives (P, 2)."""
    linear, bent, _ = linearised(posterior, derivatives, moments(posterior, tails))
    return np.sqrt(_known(posterior, linear) + bent)


def expected_move(
    posterior: Joint,
    derivatives: np.ndarray,
    batch: np.ndarray,
    tails: tuple[Tails, Tails] = NORMALS,
    noise: np.ndarray | None = None,
) -> float:
    """The mean square by which measuring a batch of pairs moves a goal with these derivatives (P, 2), to first order.

    It is what the batch takes off the variance of the goal. `noise` is that of `next_pairs`; with it what is not linear
    counts by the share of the variance that a pair loses.
    """
    linear, bent, _ = linearised(posterior, derivatives, moments(posterior, tails))
    batch, times = np.unique(batch, return_counts=True)
    told = posterior.times(linear, MOST_COLUMNS)[:, batch].ravel()
    covariance = posterior.columns(batch)[:, batch]
    errors = np.broadcast_to(NOISE * np.eye(2), (len(batch), 2, 2))
    errors = errors if noise is None else noise[batch] / times[:, None, None]
    kept = np.ones(len(batch))
    for n, own in enumerate(errors):
        covariance[:, n, :, n] += own
    if noise is not None:
        before = within(posterior)[batch]
        kept = (before / (before + errors))[:, range(2), range(2)].prod(1)
    return float((bent[batch] * kept).sum() + told @ np.linalg.solve(covariance.reshape(2 * [len(told)]), told))


def goal_variance(
    posterior: Joint, derivatives: np.ndarray, tails: tuple[Tails, Tails] = NORMALS, off: float = 0.0
) -> float:
    """The mean square of a goal with these derivatives (P, 2) around a value, to first order in q.

    The goal at the median policy is `off` above this value.
    """
    linear, bent, shift = linearised(posterior, derivatives, moments(posterior, tails))
    known = (linear * posterior.times(linear, MOST_COLUMNS)).sum()
    return float(known + bent.sum() + (shift.sum() + off) ** 2)
