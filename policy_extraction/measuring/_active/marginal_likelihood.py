"""The kernel of the largest posterior density, given what was measured.

The density of the measured probits y is the Gaussian of covariance K; weak log-normal priors keep the few parameters in
bounds while there are few measurements. Source: Rasmussen and Williams 2006, Gaussian Processes for Machine Learning,
Eq. 5.8 and 5.9.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize

from policy_extraction.measuring._active.features import Features
from policy_extraction.measuring._active.kernel import Amplitudes, Kernel, Shape

# Probits of choice are 0 to 5; sums of signs 0 to H. Standard deviations are those of logarithms, but of the angle.
AMPLITUDES = Amplitudes(*np.log([0.1, 0.1, 4.0, 0.3, 0.3, 0.1, 0.03]))
SHAPE = Shape(*np.log([0.15, 1.0, 2.0, 2.0, 3.0, 0.3, 1.0, 0.2]))._replace(angle=np.pi / 4)
SPREAD = np.array([1.5] * 6 + [2.0] + list(Shape(1.0, 0.5, 0.7, 0.7, 0.7, 1.0, 1.0, 1.0)))
N_AMPLITUDES, ANGLE = len(Amplitudes._fields), len(Amplitudes._fields) + Shape._fields.index("angle")
CENTRE = np.array([*AMPLITUDES, *SHAPE])
NOISE = 1e-6  # variance: a server's rounding, and what keeps K regular
MOST_FITTED = 300  # more measurements hardly change the parameters and take the third power of time
MOST_STEPS = 40
DIFFERENCE = 1e-5


def kernel_of(parameters: np.ndarray) -> Kernel:
    """The kernel of these numbers: logarithms, but of the angle."""
    numbers = np.exp(parameters)
    numbers[ANGLE] = parameters[ANGLE]
    return Kernel(Amplitudes(*numbers[:N_AMPLITUDES]), Shape(*numbers[N_AMPLITUDES:]))


def fitted(measured: Features, y: np.ndarray, start: np.ndarray = CENTRE, seed: int = 0) -> np.ndarray:
    """Parameters of the largest density of the probits y (n,) times prior, from `start` on."""
    if len(y) > MOST_FITTED:
        some = np.sort(np.random.default_rng(seed).permutation(len(y))[:MOST_FITTED])
        measured, y = measured.at(some), y[some]
    bounds = [(centre - 4 * spread, centre + 4 * spread) for centre, spread in zip(CENTRE, SPREAD, strict=True)]
    found = minimize(loss, start, (measured, y), "L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": MOST_STEPS})
    return found.x


def loss(parameters: np.ndarray, measured: Features, y: np.ndarray) -> tuple[float, np.ndarray]:
    """-log of the density of y times prior, up to a constant, and its gradient."""
    kernel = kernel_of(parameters)
    a = np.array(kernel.amplitudes)
    parts = kernel.parts(measured, measured)
    K = np.tensordot(a[:6], parts, 1)
    try:
        factor = cho_factor(K + (a[6] + NOISE) * np.eye(len(y)), lower=True)
    except LinAlgError:
        return np.inf, np.zeros(len(parameters))
    solved = cho_solve(factor, y)
    away = (parameters - CENTRE) / SPREAD
    value = y @ solved / 2 + np.log(np.diag(factor[0])).sum() + away @ away / 2
    # With W = (K⁻¹ - K⁻¹y yᵀK⁻¹)/2 the derivative is Σ W∘dK.
    W = (cho_solve(factor, np.eye(len(y))) - np.outer(solved, solved)) / 2
    gradient = away / SPREAD
    gradient[:6] += a[:6] * [(W * part).sum() for part in parts]
    gradient[6] += a[6] * np.trace(W)
    for j in range(N_AMPLITUDES, len(parameters)):
        moved = parameters.copy()
        moved[j] += DIFFERENCE
        gradient[j] += (W * (kernel_of(moved).between(measured, measured) - K)).sum() / DIFFERENCE
    return float(value), gradient
