"""Counts of sampled answers as probits that are known with errors, by expectation propagation.

With probit z the first of two words is said k times in n answers with a likelihood ∝ Φ(z)^k Φ(-z)^(n-k). Each factor is
replaced by a Gaussian, so that mean and variance of z in this factor times all other Gaussians are the right ones.
Source: Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, Sec. 3.6.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import log_ndtr

SWEEPS = 60
CLOSE = 1e-6  # change of a mean in deviations, and of the logarithm of a variance
STEP = 0.8  # of a sweep; all sites at once may overshoot
NEWTON = 40
LEAST_PRECISION = 1e-6  # a site of less says nothing
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(32)


class Sites(NamedTuple):
    """Known probits z (n,) of memories, and the precisions (n,) of their errors, 0 if unknown."""

    z: np.ndarray
    precision: np.ndarray


def sites(K: np.ndarray, counts: np.ndarray, start: Sites | None = None) -> Sites:
    """Gaussians in the place of counts (n, 2) of the two words, for probits of prior covariance K (n, n)."""
    tau, nu = np.zeros(len(K)), np.zeros(len(K))
    if start is not None:
        tau, nu = start.precision.copy(), start.precision * start.z
    said = counts.sum(1) > 0
    before = np.full((2, len(K)), np.inf)
    for _ in range(SWEEPS):
        mean, variance = _marginals(K, tau, nu)
        now = np.stack([mean / np.sqrt(variance), np.log(variance)])
        if (np.abs(now - before) <= CLOSE).all():
            break
        before = now
        precision = 1 / variance - tau
        cavity = mean / variance - nu
        use = said & (precision > 0)
        m, v = tilted(counts[use], cavity[use] / precision[use], 1 / precision[use])
        tau[use] += STEP * (np.maximum(1 / v - precision[use], 0) - tau[use])
        nu[use] += STEP * (m / v - cavity[use] - nu[use])
    known = tau > LEAST_PRECISION
    z = np.divide(nu, tau, out=np.zeros_like(nu), where=known)
    return Sites(z, np.where(known, tau, 0.0))


def _marginals(K: np.ndarray, tau: np.ndarray, nu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    root = np.sqrt(tau)
    lower = cholesky(np.eye(len(K)) + root[:, None] * K * root, lower=True)
    V = solve_triangular(lower, root[:, None] * K, lower=True)
    return K @ nu - V.T @ (V @ nu), np.diag(K) - (V**2).sum(0)


def tilted(counts: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance (n,) of Gaussian probits, given counts (n, 2), by quadrature around the largest density."""
    counts, mean, variance = counts[:, :, None], mean[:, None], variance[:, None]
    top = mean
    for _ in range(NEWTON):
        slope, bend = _slope(top, counts, mean, variance)
        step = np.clip(-slope / bend, -1, 1)
        top = top + step
        if (np.abs(step) <= CLOSE).all():
            break
    _, bend = _slope(top, counts, mean, variance)
    z = top + NODES / np.sqrt(-bend)
    logs = (_density(each, counts, mean, variance) for each in (z, top))
    weights = WEIGHTS * np.exp(np.subtract(*logs) + NODES**2 / 2)
    weights /= weights.sum(1, keepdims=True)
    m = (weights * z).sum(1)
    return m, (weights * (z - m[:, None]) ** 2).sum(1)


def _density(z: np.ndarray, counts: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Its logarithm, up to a constant."""
    return counts[:, 0] * log_ndtr(z) + counts[:, 1] * log_ndtr(-z) - (z - mean) ** 2 / variance / 2


def _slope(z: np.ndarray, counts: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and second derivative of `_density`."""
    slope, bend = -(z - mean) / variance, -1 / variance
    for j, sign in enumerate((1, -1)):
        ratio = np.exp(-(z**2) / 2 - log_ndtr(sign * z)) / np.sqrt(2 * np.pi)
        slope = slope + sign * counts[:, j] * ratio
        bend = bend - counts[:, j] * ratio * (ratio + sign * z)
    return slope, bend
