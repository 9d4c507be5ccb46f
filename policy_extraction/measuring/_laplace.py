"""Parameters of the largest posterior density, and random ones around it by Laplace's method.

A loss is -log of the density; it is given with its gradient. The prior of each parameter is a Gaussian of this centre
and spread. Source: Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, Section 5.2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

Loss = Callable[[np.ndarray], tuple[float, np.ndarray]]

MOST_STEPS = 40
STEP = 1e-2  # of second derivatives, in spreads of the prior
FARTHEST = 4  # spreads of the prior


def most_likely(loss: Loss, centre: np.ndarray, spread: np.ndarray, start: np.ndarray | None) -> np.ndarray:
    """The parameters (k,) of the largest density, from `start` on."""
    bounds = list(zip(centre - FARTHEST * spread, centre + FARTHEST * spread, strict=True))
    begin = centre if start is None else start
    return minimize(loss, begin, method="L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": MOST_STEPS}).x


def around(
    loss: Loss, centre: np.ndarray, spread: np.ndarray, best: np.ndarray, number: int, random: np.random.Generator
) -> np.ndarray:
    """Random parameters (number, k) around the most likely ones."""
    here = loss(best)[1]
    slopes = [loss(best + step)[1] - here for step in np.diag(STEP * spread)]
    curvature = np.array(slopes) * spread / STEP  # in units of the prior's spread, where its own is 1
    symmetric = curvature + curvature.T
    sizes, directions = np.linalg.eigh(np.where(np.isfinite(symmetric), symmetric, 0.0) / 2)
    away = random.standard_normal((number, len(best))) / np.sqrt(np.maximum(sizes, 1.0)) @ directions.T
    return np.clip(best + spread * away, centre - FARTHEST * spread, centre + FARTHEST * spread)
