"""Correlation time of the fluctuations of a word share at an attractor.

To leading order the word share has the variance C(0)/N and, at two times t apart, the covariance C(t)/N,

    C(t) = qᵀ exp(Jt) ∫ exp(Js) D exp(Jᵀs) ds q = ∫ w(s + t)ᵀ D w(s) ds,   dw/ds = Jᵀw,   w(0) = q,

so that one trajectory of the adjoint w gives all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from meanfield._finite_size.quadrature import GREGORY
from meanfield._numerics.trajectory import Vector
from meanfield._population.mixture import Mixture
from meanfield.core._export import exported

adjoint = exported("meanfield.core._instanton", "adjoint")

FINEST, COARSEST, MOST_STEPS = 0.1, 0.5, 4000  # steps of time, and their number
BLOCK = 500  # steps of one call of a program
FADED = 8.0  # times in which the slowest mode fades e-fold


class Correlation(NamedTuple):
    """The variance C(0), and C(t)/C(0) at equal steps of time."""

    variance: float
    times: Vector
    values: Vector

    def at(self, times: Vector) -> Vector:
        """C(t)/C(0), 0 where it has faded."""
        return np.where(times <= self.times[-1], CubicSpline(self.times, self.values)(times), 0.0)


def word_share_correlation(mixture: Mixture, attractor: np.ndarray, word: int, decay: float) -> Correlation | str:
    """C for the share of one word at an attractor whose slowest mode fades like exp(-decay·t).

    A string says why there is none.
    """
    n_steps = min(MOST_STEPS, int(np.ceil(FADED / decay / FINEST)))
    step = FADED / decay / n_steps
    if step > COARSEST:
        return f"the attractor is slow (eigenvalue {-decay:.2g})"
    said = mixture.q[..., word]
    w, followed, pushed = said - (attractor * said).sum() / attractor.sum(), [], []  # a constant part would not fade
    for _ in range(0, n_steps + 1, BLOCK):
        rows, noise, w = adjoint(tuple(mixture), attractor, w, np.float64(step), n_steps=BLOCK)
        followed.append(rows.reshape(BLOCK, -1))
        pushed.append(noise.reshape(BLOCK, -1))
    products = np.concatenate(followed)[: n_steps + 1] @ np.concatenate(pushed)[: n_steps + 1].T
    found = step * np.array([_integral(np.diagonal(products, -lag)) for lag in range(n_steps + 1)])
    relative = found / found[0] if found[0] > 0 else np.zeros(len(found))
    return Correlation(float(found[0]), step * np.arange(n_steps + 1), relative)


def _integral(values: Vector) -> float:
    """From 0 to where they have faded, in steps."""
    weights = np.ones(len(values))
    weights[: len(GREGORY)] = GREGORY[: len(values)]
    return float(weights @ values)
