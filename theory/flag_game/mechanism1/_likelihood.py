"""The likelihood of measured endpoints and accuracies under given moments, the climb to its top, and its curvature.

Endpoints of the seeds at one N are multinomial; their mean accuracy is normal around the model's mean with the measured
standard error. Both come from the same seeds, so their sum is a composite likelihood, not the joint one: its maximum is
consistent, but its curvature counts their common information twice. Standard errors are therefore Godambe's,
H⁻¹ K H⁻¹, where K is the covariance of the score with the model's correlations.
The joint likelihood would also hold the model to P(accuracy | endpoints), which it can't meet: a run that is polarised
between two wrong countries has no counterpart with two labels.

Sources: Varin, Reid and Firth 2011, Statistica Sinica 21, 5; Varin and Vidoni 2005, Biometrika 92, 519.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from theory.flag_game.mechanism1._coordinates import FARTHEST
from theory.flag_game.mechanism1._endpoints import EndpointCounts, Moments

LEAST_PROBABILITY = 1e-6
CLIMB_STEPS = 20
SMALL_GAIN = 2e-3  # in log-likelihood; two gains in a row below it end a climb
DAMPING = (1e-2, 1e7)  # first, and the one at which a climb gives up
FASTER, SLOWER = 0.2, 6.0  # times the damping after a step up, and after a step that failed
# A parameter with a standard error above 1 in its coordinate, a factor of 2.7 or a nat, counts as unknown.
KNOWN = 1.0
LEAST_CURVATURE = 1e-4  # instead of none: a standard error of 100, whose intervals hold nearly everything


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


def scoring_parts(moments: np.ndarray, jacobian: np.ndarray, measured: EndpointCounts) -> tuple[np.ndarray, np.ndarray]:
    """Gradient (P,) of the log-likelihood and expected curvature (P, P), from the moments' Jacobian (K, 5, P)."""
    weighted = score_weights(moments, measured)[..., None] * jacobian
    # Without a measured accuracy its residual is 0.
    residuals = np.nan_to_num(np.c_[measured.counts / measured.seeds[:, None], measured.accuracy] - moments)
    return np.einsum("ki,kip->p", residuals, weighted), np.einsum("kip,kiq->pq", jacobian, weighted)


def score_weights(moments: np.ndarray, measured: EndpointCounts) -> np.ndarray:
    """Weights (K, 5): times measured - expected, they are the log-likelihood's derivative in the moments."""
    endpoints = np.where(measured.possible, np.maximum(moments[:, :4], LEAST_PROBABILITY), np.inf)
    return np.c_[measured.seeds[:, None] / endpoints, measured.precision]


class Summit(NamedTuple):
    """The end of a climb."""

    coordinates: np.ndarray
    moments: np.ndarray  # (K, 5)
    log_likelihood: float


def climb(
    moments_at: Callable[[list[np.ndarray]], Sequence[np.ndarray]],
    slopes_at: Callable[[np.ndarray, np.ndarray], np.ndarray],
    start: np.ndarray,
    measured: EndpointCounts,
    steps: int = CLIMB_STEPS,
    together: int = 1,
) -> Summit:
    """Damped Fisher scoring: up the log-likelihood of `moments_at` with the Jacobian `slopes_at(point, moments)`.

    Damping favours short steps, so directions that the data do not determine stay at their start. One call tries
    `together` steps; their number does not change the path.
    """

    def reached(points: list[np.ndarray]) -> list[Summit]:
        found = zip(points, moments_at(points), strict=True)
        return [Summit(at, moments, log_likelihood(moments, measured)) for at, moments in found]

    (here,) = reached([start])
    damping, small = DAMPING[0], 0
    for _ in range(steps):
        gradient, curvature = scoring_parts(here.moments, slopes_at(here.coordinates, here.moments), measured)
        there = None
        while there is None and damping < DAMPING[1]:
            tried = damping * SLOWER ** np.arange(together)
            moves = [np.linalg.solve(curvature + one * np.eye(len(start)), gradient) for one in tried]
            found = reached([np.clip(here.coordinates + move, start - FARTHEST, start + FARTHEST) for move in moves])
            better = [k for k, one in enumerate(found) if one.log_likelihood > here.log_likelihood]
            there = found[better[0]] if better else None
            damping = FASTER * tried[better[0]] if better else SLOWER * tried[-1]
        if there is None:
            break
        small = small + 1 if there.log_likelihood - here.log_likelihood < SMALL_GAIN else 0
        here = there
        if small == 2:
            break
    return here


class Information(NamedTuple):
    """At the likeliest parameters; P free ones."""

    curvature: np.ndarray  # (P, P), H
    covariance: np.ndarray  # (P, P), of the coordinates: H⁻¹ K H⁻¹
    eigenvalues: np.ndarray  # (P,), falling, of H
    directions: np.ndarray  # (P, P), direction i is the row i, of length 1 in coordinates
    # tr(H⁻¹ K) over directions with curvature; for a complete and regular likelihood, the number of free parameters.
    # Only for exact Jacobians: the noise of simulated ones passes for curvature.
    effective_parameters: float


def information(
    moments: Moments, left: np.ndarray, right: np.ndarray, measured: EndpointCounts, simulated_runs: float
) -> Information:
    """From two Jacobians (K, 5, P) of independent simulations, or twice the same exact one.

    The product of a noisy Jacobian with itself contains the noise's variance, which would pass for information. The
    `simulated_runs` behind the moments add their luck to K, as if that many seeds had been measured.
    """
    halves = [scoring_parts(moments.values, j, measured)[1] for j in (left + right, left - right)]
    curvature = 0.25 * (halves[0] - halves[1])  # the symmetric part of leftᵀ W right
    luck = moments.covariances * (1 / measured.seeds + 1 / simulated_runs)[:, None, None]
    scores = [score_weights(moments.values, measured)[..., None] * one for one in (left, right)]
    spread = (scores[0].swapaxes(1, 2) @ luck @ scores[1]).sum(axis=0)
    spread = 0.5 * (spread + spread.T)
    eigenvalues, vectors = np.linalg.eigh(curvature)
    eigenvalues, vectors = eigenvalues[::-1], vectors[:, ::-1]
    inverse = (vectors / np.maximum(eigenvalues, LEAST_CURVATURE)) @ vectors.T
    known = (vectors * (eigenvalues > KNOWN**-2)) @ vectors.T
    covariance = inverse @ spread @ inverse
    # In unknown directions K and H are noise, and so is their quotient: there the variance comes from H alone.
    lost = np.eye(len(eigenvalues)) - known
    covariance = known @ covariance @ known + lost @ inverse @ lost
    curved = (vectors * (eigenvalues > LEAST_CURVATURE)) @ vectors.T
    effective = float(np.trace(curved @ inverse @ spread))
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(len(vectors))]
    return Information(curvature, covariance, eigenvalues, (vectors * np.sign(largest)).T, effective)


def judgement(value: float, effective: float, measured: EndpointCounts) -> dict[str, float]:
    """Information criteria of a composite likelihood. Sources: Varin and Vidoni 2005; Gao and Song 2010, JASA 105."""
    criteria = {"aic": 2 * effective - 2 * value, "bic": float(np.log(measured.seeds.sum()) * effective - 2 * value)}
    return {"log_likelihood": value, "effective_parameters": effective} | criteria
