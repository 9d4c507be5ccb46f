"""The kernel of the largest posterior density, given what was measured.

The density of the measured probits y is the Gaussian of covariance K; weak log-normal priors keep the few parameters in
bounds while there are few measurements. Source: Rasmussen and Williams 2006, Gaussian Processes for Machine Learning,
Eq. 5.8 and 5.9.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from policy_extraction.measuring._active.features import Features
from policy_extraction.measuring._active.kernel import EVEN, ODD, Amplitudes, Kernel, Shape
from policy_extraction.measuring._laplace import around, most_likely

# Probits of choice are 0 to 5; sums of signs 0 to H. Standard deviations are those of logarithms, but of the angle.
AMPLITUDES = {ODD: Amplitudes(0.1, 4.0, 0.3, 0.03), EVEN: Amplitudes(0.1, 0.3, 0.1, 0.03)}
SHAPE = Shape(*np.log([0.15, 1.0, 2.0, 2.0, 3.0, 0.3, 1.0, 0.2]))._replace(angle=np.pi / 4)
SPREAD = np.array([*Amplitudes(1.5, 1.5, 1.5, 2.0), *Shape(1.0, 0.5, 0.7, 0.7, 0.7, 1.0, 1.0, 1.0)])
N_AMPLITUDES, ANGLE = len(Amplitudes._fields), len(Amplitudes._fields) + Shape._fields.index("angle")
CENTRE = {parity: np.array([*np.log(amplitudes), *SHAPE]) for parity, amplitudes in AMPLITUDES.items()}
NOISE = 1e-6  # variance: a server's rounding, and what keeps K regular
MOST_FITTED = 300  # more measurements hardly change the parameters and take the third power of time
DIFFERENCE = 1e-5


def kernel_of(parameters: np.ndarray, parity: int) -> Kernel:
    """The kernel of these numbers: logarithms, but of the angle."""
    numbers = np.exp(parameters)
    numbers[ANGLE] = parameters[ANGLE]
    return Kernel(Amplitudes(*numbers[:N_AMPLITUDES]), Shape(*numbers[N_AMPLITUDES:]), parity)


class Measured(NamedTuple):
    """A part y (n,) of the probits of memories, known with errors of variances `errors` (n,) besides `NOISE`."""

    at: Features
    y: np.ndarray
    errors: np.ndarray | float = 0.0

    def some(self, seed: int) -> Measured:
        """At most `MOST_FITTED` of them."""
        n = len(self.y)
        if n <= MOST_FITTED:
            return self
        some = np.sort(np.random.default_rng(seed).permutation(n)[:MOST_FITTED])
        return Measured(self.at.at(some), self.y[some], np.broadcast_to(self.errors, n)[some])


def fitted(measured: Measured, parity: int, start: np.ndarray | None = None, seed: int = 0) -> np.ndarray:
    """Parameters of the largest density of what was measured times prior, from `start` on."""
    measured = measured.some(seed)
    return most_likely(lambda parameters: loss(parameters, measured, parity), CENTRE[parity], SPREAD, start)


def drawn(measured: Measured, parity: int, best: np.ndarray, number: int, random: np.random.Generator) -> np.ndarray:
    """Random parameters (number, k) of the posterior density, by Laplace's method around the largest density."""
    measured = measured.some(0)
    return around(lambda parameters: loss(parameters, measured, parity), CENTRE[parity], SPREAD, best, number, random)


def loss(parameters: np.ndarray, measured: Measured, parity: int) -> tuple[float, np.ndarray]:
    """-log of the density of y times prior, up to a constant, and its gradient."""
    at, y, errors = measured
    kernel = kernel_of(parameters, parity)
    *a, _ = kernel.amplitudes
    alone = kernel.alone(at)
    parts = kernel.parts(at, at)
    K = np.tensordot(a, parts, 1)
    try:
        factor = cho_factor(K + np.diag(alone + NOISE + errors), lower=True)
    except LinAlgError:
        return np.inf, np.zeros(len(parameters))
    solved = cho_solve(factor, y)
    away = (parameters - CENTRE[parity]) / SPREAD
    value = y @ solved / 2 + np.log(np.diag(factor[0])).sum() + away @ away / 2
    # With W = (K⁻¹ - K⁻¹y yᵀK⁻¹)/2 the derivative is Σ W∘dK.
    W = (cho_solve(factor, np.eye(len(y))) - np.outer(solved, solved)) / 2
    gradient = away / SPREAD
    gradient[:N_AMPLITUDES] += [
        *(size * (W * part).sum() for size, part in zip(a, parts, strict=True)),
        alone @ np.diag(W),
    ]
    for j in range(N_AMPLITUDES, len(parameters)):
        moved = parameters.copy()
        moved[j] += DIFFERENCE
        gradient[j] += (W * (kernel_of(moved, parity).between(at, at) - K)).sum() / DIFFERENCE
    return float(value), gradient
