"""Standard errors, and the combinations of parameters that the data determine."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from theory.flag_game.mechanism1._coordinates import WEIGHTS
from theory.flag_game.mechanism1._counts import EndpointCounts
from theory.flag_game.mechanism1._likelihood import score_covariance, scoring_parts
from theory.flag_game.mechanism1._simulated import Moments

STEP = 0.15  # of coordinates, over which simulated differences are taken
# A parameter with a standard error above 1 in its coordinate, a factor of 2.7 or a nat, counts as unknown.
KNOWN = 1.0
LEAST_CURVATURE = 1e-4  # instead of none: a standard error of 100, whose intervals hold nearly everything
SHOWN = 0.3  # loadings below it are left out of the description of a direction

Simulate = Callable[[list[np.ndarray], int], list[Moments]]  # of points in coordinates, and a seed


class Information(NamedTuple):
    """At the likeliest parameters; P free ones."""

    curvature: np.ndarray  # (P, P), H
    covariance: np.ndarray  # (P, P), of the coordinates: H⁻¹ K H⁻¹
    eigenvalues: np.ndarray  # (P,), falling, of H
    directions: np.ndarray  # (P, P), direction i is the row i, of length 1 in coordinates
    # tr(H⁻¹ K) over directions with curvature; for a complete and regular likelihood, the number of free parameters.
    # Only for exact Jacobians: the noise of simulated ones passes for curvature.
    effective_parameters: float


def differences(simulate: Simulate, point: np.ndarray, seed: int) -> np.ndarray:
    """The Jacobian (K, 5, P) by central differences with common random numbers."""
    moves = STEP * np.eye(len(point))
    values = np.stack([moments.values for moments in simulate([*(point + moves), *(point - moves)], seed)], axis=-1)
    return (values[..., : len(point)] - values[..., len(point) :]) / (2 * STEP)


def information(
    moments: Moments, left: np.ndarray, right: np.ndarray, measured: EndpointCounts, simulated_runs: float
) -> Information:
    """From two Jacobians (K, 5, P) of independent simulations, or twice the same exact one.

    The product of a noisy Jacobian with itself contains the noise's variance, which would pass for information.
    """
    halves = [scoring_parts(moments.values, j, measured)[1] for j in (left + right, left - right)]
    curvature = 0.25 * (halves[0] - halves[1])  # the symmetric part of leftᵀ W right
    spread = score_covariance(moments.values, moments.covariances, left, right, measured, simulated_runs)
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
    return Information(curvature, covariance, eigenvalues, _signed(vectors.T), effective)


def _signed(directions: np.ndarray) -> np.ndarray:
    """Rows with their largest element positive."""
    largest = np.abs(directions).argmax(axis=1)
    return directions * np.sign(directions[np.arange(len(directions)), largest])[:, None]


def describe(direction: np.ndarray, names: tuple[str, ...], scales: tuple[str, ...]) -> str:
    """A direction as text, such as '0.83 ln J + 0.51 ln beta', the largest first, without small loadings."""
    order = [i for i in np.argsort(-np.abs(direction)) if np.abs(direction[i]) >= SHOWN]
    terms = [f"{'-' if direction[i] < 0 else '+'} {abs(direction[i]):.2f} {scales[i].format(names[i])}" for i in order]
    return " ".join(terms).removeprefix("+ ")


def scale_of(name: str) -> str:
    """The coordinate as a function of its parameter {}, as text; weight_0 is 1 - weight_T - weight_R."""
    if name in WEIGHTS:
        return "ln({}/weight_0)"
    if name == "alpha":
        return "logit {}"
    return "{}" if name.startswith("mean") else "ln {}"
