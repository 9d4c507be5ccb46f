"""The chance that the failures of three rounds in a row are few enough to count as consensus.

Given the course of a population, the failures of round r are a binomial number of mean N f_r G. The gamma number G, of
mean 1, is shared by the rounds of a window and varies from group to group: the failures of a window spread more than
binomial numbers. Windows overlap; of the past, only the window before is taken to matter:

    P(T > k) = P(T > k - 1) · P(W_k > m | W_(k-1) > m).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import gammaincinv, gammaln, ndtr

from meanfield._finite_size.course_noise import WINDOW

FACTORS = 12  # values of G, equally likely
COUNTED = 300  # allowed failures above which a window's number is as good as normal
HOPELESS = 0.5  # mean failures, relative to N, of windows that are not looked at
DONE = 1e-10  # chance of no consensus that is as good as 0
LEAST = 1e-7  # variance of G
NARROW, WIDEST = 1e-3, 4.0  # variance of G below which it is as good as normal; the largest that is told apart

Table = Float[np.ndarray, "courses rounds"]


def consensus_by(failures: Table, excess: Table, n_agents: int, allowed: int, first: int) -> Table:
    """The chance that a course has reached consensus by the end of each round.

    `failures` are the mean chances of failure, `excess` the variances of G in the window up to each round, and `first`
    is the first round tested.
    """
    by = np.zeros(failures.shape)
    without = np.ones(len(failures))
    for k in range(first, failures.shape[1]):
        tested = (failures[:, k - WINDOW + 1 : k + 1].mean(1) < HOPELESS) & (without > DONE)
        if not tested.any() and without.max() <= DONE:
            by[:, k:] = 1.0
            break
        rounds = failures[tested, max(0, k - WINDOW) : k + 1]
        if allowed > COUNTED:
            passing = _normal_chance(rounds[:, -WINDOW:], excess[tested, k], n_agents, allowed)
            without[tested] = np.minimum(without[tested], 1 - passing)
        else:
            passing, both, before = _chances(rounds, excess[tested, k], n_agents, allowed)
            if k == first:
                without[tested] = 1 - passing
            else:
                failed = 1 - before
                still = np.divide(failed - passing + both, failed, out=np.zeros_like(failed), where=failed > 1e-12)
                without[tested] *= np.clip(still, 0.0, 1.0)
        by[:, k] = 1 - without
    return by


def _chances(
    rounds: Float[np.ndarray, "courses four"], excess: np.ndarray, n_agents: int, allowed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The chances that the last window passes, that it and the one before do, and that the one before does."""
    p = np.minimum(_factors(excess)[:, :, None] * rounds[:, None, :], 0.999)
    shared = _binomial(2 * n_agents, p[:, :, 1:-1].mean(-1), allowed)
    oldest, newest = (_binomial(n_agents, p[:, :, i], allowed).cumsum(-1)[..., ::-1] for i in (0, -1))
    chances = [(shared * one).sum(-1).mean(1) for one in (newest, newest * oldest, oldest)]
    return chances[0], chances[1], chances[2]


def _factors(excess: np.ndarray) -> Float[np.ndarray, "courses factors"]:
    """Values of G of equal chance."""
    variance = np.clip(excess, LEAST, WIDEST)[:, None]
    chances = (np.arange(FACTORS) + 0.5) / FACTORS
    shape = 1 / np.maximum(variance, NARROW)
    values = gammaincinv(shape, chances) / shape
    spread = np.sqrt(variance / np.maximum(variance, NARROW))
    return np.maximum(1 + spread * (values / values.mean(1, keepdims=True) - 1), 0.0)


def _binomial(n: int, p: np.ndarray, most: int) -> np.ndarray:
    """The chances of 0 to `most` of n."""
    k = np.arange(most + 1)
    p = np.clip(p, 1e-300, 1 - 1e-12)[..., None]
    inside = np.minimum(k, n)
    ways = gammaln(n + 1) - gammaln(inside + 1) - gammaln(n - inside + 1)
    return np.where(k <= n, np.exp(ways + inside * np.log(p) + (n - inside) * np.log1p(-p)), 0.0)


def _normal_chance(
    rounds: Float[np.ndarray, "courses three"], excess: np.ndarray, n_agents: int, allowed: int
) -> np.ndarray:
    """The chance that a window passes."""
    mean = n_agents * rounds.sum(1)
    variance = n_agents * (rounds * (1 - rounds)).sum(1) + excess * mean**2
    return ndtr((allowed + 0.5 - mean) / np.sqrt(np.maximum(variance, 1e-12)))
