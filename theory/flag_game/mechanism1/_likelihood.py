"""The likelihood of measured endpoints and accuracies under given moments.

Endpoints of the seeds at one N are multinomial; their mean accuracy is normal around the model's mean with the measured
standard error. Both come from the same seeds, so their sum is a composite likelihood, not the joint one: its maximum is
consistent, but its curvature counts their common information twice. Standard errors are therefore Godambe's,
H⁻¹ K H⁻¹, where K is the covariance of the score with the model's correlations.
The joint likelihood would also hold the model to P(accuracy | endpoints), which it can't meet: a run that is polarised
between two wrong countries has no counterpart with two labels.

Sources: Varin, Reid and Firth 2011, Statistica Sinica 21, 5; Varin and Vidoni 2005, Biometrika 92, 519.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln

from theory.flag_game.mechanism1._counts import EndpointCounts

PSEUDO_COUNT = 0.5  # added to each possible class of a simulation, whose zeros would make log-likelihoods -inf
LEAST_PROBABILITY = 1e-6


def smoothed_endpoints(numbers: np.ndarray, possible: np.ndarray) -> np.ndarray:
    """Probabilities of classes from numbers of simulated runs (..., 4), with a pseudo-count for each possible class."""
    raised = numbers + PSEUDO_COUNT * possible
    return raised / raised.sum(axis=-1, keepdims=True)


def log_likelihood(moments: np.ndarray, measured: EndpointCounts) -> float:
    """The natural logarithm of the likelihood of all measurements under moments (K, 5), with its constants."""
    constants = gammaln(measured.seeds + 1).sum() - gammaln(measured.counts + 1).sum()
    seen = np.isfinite(measured.accuracy)
    constants -= np.log(measured.standard_error[seen] * np.sqrt(2 * np.pi)).sum()
    return float(varying_part(moments, measured) + constants)


def varying_part(moments: Any, measured: EndpointCounts) -> Any:
    """The part of the log-likelihood that depends on the moments (K, 5), in NumPy or JAX."""
    xp = moments.__array_namespace__()
    seen = xp.isfinite(measured.accuracy)
    accuracy, error = xp.where(seen, measured.accuracy, 0.0), xp.where(seen, measured.standard_error, xp.inf)
    misses = (moments[:, 4] - accuracy) / error
    # Endpoints that can't occur have counts of 0.
    return xp.sum(measured.counts * xp.log(xp.maximum(moments[:, :4], LEAST_PROBABILITY))) - 0.5 * xp.sum(misses**2)


def score_weights(moments: np.ndarray, measured: EndpointCounts) -> np.ndarray:
    """Weights (K, 5): times measured - expected, they are the log-likelihood's derivative in the moments."""
    endpoints = np.where(measured.possible, np.maximum(moments[:, :4], LEAST_PROBABILITY), np.inf)
    return np.c_[measured.seeds[:, None] / endpoints, measured.precision]


def residuals(moments: np.ndarray, measured: EndpointCounts) -> np.ndarray:
    """Measured minus expected shares of endpoints and accuracies, shape (K, 5); 0 without a measurement."""
    return np.nan_to_num(np.c_[measured.counts / measured.seeds[:, None], measured.accuracy] - moments)


def scoring_parts(moments: np.ndarray, jacobian: np.ndarray, measured: EndpointCounts) -> tuple[np.ndarray, np.ndarray]:
    """Gradient (P,) of the log-likelihood and expected curvature (P, P), from the moments' Jacobian (K, 5, P)."""
    weighted = score_weights(moments, measured)[..., None] * jacobian
    gradient = np.einsum("ki,kip->p", residuals(moments, measured), weighted)
    return gradient, np.einsum("kip,kiq->pq", jacobian, weighted)


def score_covariance(
    moments: np.ndarray,
    covariances: Sequence[np.ndarray],
    left: np.ndarray,
    right: np.ndarray,
    measured: EndpointCounts,
    simulated_runs: float,
) -> np.ndarray:
    """K (P, P), the covariance of the score, from the covariances (5, 5) of one run's moments.

    `left` and `right` are Jacobians (K, 5, P) of independent simulations, whose noise does not add to K, or exact. The
    `simulated_runs` behind the moments add their luck, as if that many seeds had been measured.
    """
    weights = score_weights(moments, measured)
    total = np.zeros((left.shape[-1], right.shape[-1]))
    for k, covariance in enumerate(covariances):
        spread = covariance * (1 / measured.seeds[k] + 1 / simulated_runs)
        total += (weights[k, :, None] * left[k]).T @ spread @ (weights[k, :, None] * right[k])
    return 0.5 * (total + total.T)
