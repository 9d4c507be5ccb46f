"""Measurements of two words by sampled answers, of services that give no log-probabilities.

With probit z the first of two words is said k times in n answers with a likelihood ∝ Φ(z)^k Φ(-z)^(n-k). Each factor is
replaced by a Gaussian, so that mean and variance of z in this factor times all other Gaussians are the right ones
(expectation propagation). Source: Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, Sec. 3.6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import log_ndtr, ndtr, ndtri, softmax
from scipy.stats import binom

from policy_extraction.measuring._active.choice import WEIGHTS, XI
from policy_extraction.measuring._active.explore import LOGIT, GoalExploration
from policy_extraction.measuring._doubt import Tails
from policy_extraction.measuring._exploration import REFIT
from policy_extraction.measuring._gaussian_process import NOISE, covariances

ANSWERS = 4  # of a memory at a time; a multiple of the two orders
UNKNOWN = 1e6  # variance of a probit about which an answer says nothing
LEAST_PROBABILITY = 1e-12
SWEEPS = 60
CLOSE = 1e-6  # change of a mean in deviations, and of the logarithm of a variance
STEP = 0.8  # of a sweep; all sites at once may overshoot
LEAST_PRECISION = 1e-6  # a site of less says nothing
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(32)


@dataclass
class SampledExploration(GoalExploration):
    """An exploration in which `ask` gives counts (n, 2) of both words in `ANSWERS` new answers in states (n,).

    Memories are asked again and again: `order` has all of these times.
    """

    once = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.counts = np.zeros((self.space.n_states, 2), dtype=int)
        self._sites = np.zeros((2, self.space.n_states))  # as in `sites`

    @property
    def noise(self) -> np.ndarray:
        return np.minimum(_variance(self.mean) / ANSWERS, UNKNOWN)

    def _measure(self, memories: np.ndarray, n_tests: int) -> None:
        counts = self.ask(memories)
        for k, state in zip(counts[:n_tests, 0], memories[:n_tests], strict=True):
            q = ndtr(self.mean[state] + np.sqrt(self.variance[state]) * Tails().of(XI))
            self.doubt.errors.append(np.array([quantile(k, q, self.random)]))
        np.add.at(self.counts, memories, counts)
        self.order = np.concatenate([self.order, memories])

    def _fit(self) -> None:
        states = np.flatnonzero(self.asked)
        for _ in range(1 + (self.n_measured >= max(1, REFIT * self._fitted_at))):  # sites and kernel in turn
            codes = self.codes[states]
            K = covariances(self.parameters, codes, codes, 2).reshape(2 * [len(states)]) / LOGIT**2
            known = sites(K + NOISE * np.eye(len(K)), self.counts[states], self._sites[:, states])
            z, precision = self._sites[:, states] = known
            some = precision > 0
            self._take(states[some], z[some], 1 / precision[some])


def quantile(count: int, q: np.ndarray, random: np.random.Generator) -> float:
    """Error of a predicted count of `ANSWERS` in standard deviations of `Tails`, if q has these values at the nodes.

    Its quantile, drawn within the probability of the count itself, becomes a quantile of the tails.
    """
    q = np.clip(q, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)  # probabilities of counts overflow at 1e-308
    probability = binom.pmf(np.arange(ANSWERS + 1)[:, None], ANSWERS, q) @ WEIGHTS
    below = (probability[:count].sum() + random.random() * probability[count]) / probability.sum()
    return float(Tails().of(ndtri(np.clip(below, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY))))


def sites(K: np.ndarray, counts: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Gaussians in the place of counts (n, 2) of the two words, for probits of prior covariance K (n, n).

    They are known probits z and the precisions of their errors, 0 if unknown; they and those to start from are (2, n).
    """
    said = counts.sum(1) > 0
    first = ndtri((counts[:, 0] + 0.5) / (counts.sum(1) + 1))  # about where the likelihood is largest
    z, tau = np.where(said & (start[1] == 0), [first, counts.sum(1) / _variance(first)], start)
    nu, before = tau * z, np.full((2, len(K)), np.inf)
    for _ in range(SWEEPS):
        mean, variance = _marginals(K, tau, nu)
        now = np.stack([mean / np.sqrt(variance), np.log(variance)])
        if (np.abs(now - before) <= CLOSE).all():
            break
        before = now
        precision = 1 / variance - tau
        cavity = mean / variance - nu
        use = said & (precision > 0)
        # Moments of a factor times all other Gaussians, by quadrature around the present ones.
        z = mean[use, None] + np.sqrt(variance[use, None]) * NODES
        log = counts[use, :1] * log_ndtr(z) + counts[use, 1:] * log_ndtr(-z)
        log += cavity[use, None] * z - precision[use, None] * z**2 / 2
        weights = softmax(log + NODES**2 / 2 + np.log(NODE_WEIGHTS), axis=1)
        m = (weights * z).sum(1)
        v = (weights * (z - m[:, None]) ** 2).sum(1)
        tau[use] += STEP * (np.maximum(1 / v - precision[use], 0) - tau[use])
        nu[use] += STEP * (m / v - cavity[use] - nu[use])
    known = tau > LEAST_PRECISION
    return np.stack([np.divide(nu, tau, out=np.zeros_like(nu), where=known), np.where(known, tau, 0.0)])


def _marginals(K: np.ndarray, tau: np.ndarray, nu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    root = np.sqrt(tau)
    lower = cholesky(np.eye(len(K)) + root[:, None] * K * root, lower=True)
    V = solve_triangular(lower, root[:, None] * K, lower=True)
    return K @ nu - V.T @ (V @ nu), np.diag(K) - (V**2).sum(0)


def _variance(z: np.ndarray) -> np.ndarray:
    """Variances of the errors of probits by an answer, whose information is φ(z)²/(q(1 - q))."""
    density = np.maximum(np.exp(-(z**2)) / (2 * np.pi), np.finfo(float).tiny)
    return ndtr(z) * ndtr(-z) / density
