"""What the data determine: standard errors, and the combinations of parameters that are known and unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from theory.flag_game.mechanism1._coordinates import WEIGHTS
from theory.flag_game.mechanism1._counts import EndpointCounts
from theory.flag_game.mechanism1._likelihood import score_covariance, scoring_parts
from theory.flag_game.mechanism1._simulated import Moments

STEP = 0.15  # of coordinates, over which simulated differences are taken
# Standard errors above 1 in a coordinate, a factor of 2.7 or a nat, leave a parameter unknown for practical purposes.
KNOWN = 1.0
LEAST_CURVATURE = 1e-4  # stands for none; its standard error, 100, makes intervals that hold nearly everything
SHOWN = 0.3  # loadings below it are left out of the description of a direction

Simulate = Callable[[list[np.ndarray], int], list[Moments]]  # of points in coordinates, and a seed


class Information(NamedTuple):
    """At the likeliest parameters; P free ones."""

    curvature: np.ndarray  # (P, P), H
    covariance: np.ndarray  # (P, P), of the coordinates: H⁻¹ K H⁻¹
    eigenvalues: np.ndarray  # (P,), falling, of H
    directions: np.ndarray  # (P, P), direction i is the row i, of length 1 in coordinates
    # tr(H⁻¹ K) over all that has curvature: the number of free ones where the likelihood is complete and regular. For
    # exact Jacobians only, since the noise of simulated ones passes for curvature.
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

    A product of two noisy estimates has the noise's variance in it, which would pass for information, unless the two
    are independent.
    """
    halves = [scoring_parts(moments.values, j, measured)[1] for j in (left + right, left - right)]
    curvature = 0.25 * (halves[0] - halves[1])  # the symmetric part of leftᵀ W right
    spread = score_covariance(moments.values, moments.covariances, left, right, measured, simulated_runs)
    eigenvalues, vectors = np.linalg.eigh(curvature)
    eigenvalues, vectors = eigenvalues[::-1], vectors[:, ::-1]
    inverse = (vectors / np.maximum(eigenvalues, LEAST_CURVATURE)) @ vectors.T
    known = (vectors * (eigenvalues > KNOWN**-2)) @ vectors.T
    covariance = inverse @ spread @ inverse
    # Where nothing is known, K and H are noise, and their quotient says nothing: there the variance is that of H alone.
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
    """A direction in words, as '0.83 ln J + 0.51 ln beta', the largest first; small loadings are left out."""
    order = [i for i in np.argsort(-np.abs(direction)) if np.abs(direction[i]) >= SHOWN]
    terms = [f"{'-' if direction[i] < 0 else '+'} {abs(direction[i]):.2f} {scales[i].format(names[i])}" for i in order]
    return " ".join(terms).removeprefix("+ ")


def scale_of(name: str) -> str:
    """How a coordinate is made from its parameter, with {} for the name; weight_0 is 1 - weight_T - weight_R."""
    if name in WEIGHTS:
        return "ln({}/weight_0)"
    if name == "alpha":
        return "logit {}"
    return "{}" if name.startswith("mean") else "ln {}"
