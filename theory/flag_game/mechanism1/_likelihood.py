"""How probable measured endpoints and accuracies are under given moments.

Endpoints of the seeds at one N are multinomial; their mean accuracy is normal around the model's mean with the measured
standard error. Both come from the same seeds, so their sum is a composite likelihood, not the joint one: its maximum is
consistent, but its curvature counts what they share twice. Standard errors are therefore those of Godambe,
H⁻¹ K H⁻¹, where K is the covariance of the score with all correlations as the model has them.
The joint likelihood would hold the model to P(accuracy | endpoints) as well, which it can't meet: a run that is
polarised between two wrong countries has no counterpart among two labels.

Sources: Varin, Reid and Firth 2011, Statistica Sinica 21, 5; Varin and Vidoni 2005, Biometrika 92, 519.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    """Of all measurements, given moments (K, 5): natural logarithm, with its constants."""
    constants = gammaln(measured.seeds + 1).sum() - gammaln(measured.counts + 1).sum()
    seen = np.isfinite(measured.accuracy)
    constants -= np.log(measured.standard_error[seen] * np.sqrt(2 * np.pi)).sum()
    return float(varying_part(moments, *observations(measured)) + constants)


def observations(measured: EndpointCounts) -> tuple[np.ndarray, ...]:
    """Counts, which of them are possible, accuracies, and their precision, 0 where they were not measured."""
    seen = np.isfinite(measured.accuracy)
    precision = np.where(seen, measured.standard_error, np.inf) ** -2.0
    return measured.counts, measured.possible, np.where(seen, measured.accuracy, 0.0), precision


def varying_part(
    moments: np.ndarray, counts: np.ndarray, possible: np.ndarray, accuracy: np.ndarray, precision: np.ndarray
) -> float:
    """The log-likelihood without what does not depend on the moments."""
    endpoints = np.where(possible, np.maximum(moments[:, :4], LEAST_PROBABILITY), 1.0)
    return np.sum(counts * np.log(endpoints)) - 0.5 * np.sum(precision * (moments[:, 4] - accuracy) ** 2)


def score(moments: np.ndarray, jacobian: np.ndarray, measured: EndpointCounts) -> tuple[float, np.ndarray]:
    """The varying part and its gradient (P,), also of moments whose possible endpoints don't sum to 1."""
    counts, possible, accuracy, precision = observations(measured)
    seen = possible & (moments[:, :4] > LEAST_PROBABILITY)
    slope = np.where(seen, counts / np.where(seen, moments[:, :4], 1.0), 0.0)
    weights = np.c_[slope, precision * (accuracy - moments[:, 4])]
    value = varying_part(moments, counts, possible, accuracy, precision)
    return value, np.einsum("ki,kip->p", weights, jacobian)


def score_weights(moments: np.ndarray, measured: EndpointCounts) -> np.ndarray:
    """The derivative of the log-likelihood in the moments is weights · (measured - expected); shape (K, 5)."""
    endpoints = np.where(measured.possible, np.maximum(moments[:, :4], LEAST_PROBABILITY), np.inf)
    accuracy = np.where(np.isfinite(measured.accuracy), measured.standard_error, np.inf) ** -2.0
    return np.concatenate([measured.seeds[:, None] / endpoints, accuracy[:, None]], axis=1)


def residuals(moments: np.ndarray, measured: EndpointCounts) -> np.ndarray:
    """Measured minus expected shares of endpoints and accuracies, shape (K, 5); 0 where nothing was measured."""
    seen = np.concatenate([measured.counts / measured.seeds[:, None], measured.accuracy[:, None]], axis=1)
    return np.nan_to_num(seen - moments)


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
    """K (P, P): covariance of the score, from that of one run's moments, each (5, 5).

    `left` and `right` are Jacobians (K, 5, P), from independent simulations where they come from some: their noise then
    does not add to K. The `simulated_runs` behind the moments are luck too, as if that many seeds had been measured.
    """
    weights = score_weights(moments, measured)
    total = np.zeros((left.shape[-1], right.shape[-1]))
    for k, covariance in enumerate(covariances):
        spread = covariance * (1 / measured.seeds[k] + 1 / simulated_runs)
        total += (weights[k, :, None] * left[k]).T @ spread @ (weights[k, :, None] * right[k])
    return 0.5 * (total + total.T)
