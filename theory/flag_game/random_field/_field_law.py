"""Distributions of the private field h: mixtures of normal ones and, as components of width zero, of single values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from meanfield import InputError
from meanfield.toolbox import real_number, real_numbers

REACH = 9.0  # standard deviations; beyond lies 2e-19 of a normal distribution
# The trapezoidal rule errs by exp(-2π·distance/step), with the distance of the poles of tanh from the real axis.
STEPS_A_POLE = 6.0
MOST_STEPS = 20_000
ATOMS_A_BLOCK = 2**22


@dataclass(frozen=True)
class FieldLaw:
    """A distribution of private fields, Σ_c w_c N(μ_c, σ_c²).

    Attributes
    ----------
    weights, means, sds
        Shape (components,), array-like; means and standard deviations in nats. Weights sum to 1; a component of sd 0 is
        a single value.

    Raises
    ------
    InputError
        If the shapes differ, the weights are not probabilities, or a number is out of range.

    Examples
    --------
    Three agents in four favour the truth by a field near 1, the others the rival.

    >>> law = theory.flag_game.random_field.FieldLaw([0.75, 0.25], [1.0, -1.0], [0.2, 0.2])
    >>> law.symmetric, law.response([0.0, 1.0], beta=2.0).round(3)
    (False, array([0.476, 0.749]))
    """

    weights: np.ndarray
    means: np.ndarray
    sds: np.ndarray

    def __post_init__(self) -> None:
        for name in ("weights", "means", "sds"):
            object.__setattr__(self, name, real_numbers(getattr(self, name), name))
        if not self.weights.shape == self.means.shape == self.sds.shape or self.weights.ndim != 1:
            raise InputError("weights, means and sds differ in length: expected one number of each per component")
        if not (self.weights >= 0).all() or abs(self.weights.sum() - 1) > 1e-9:
            told = f"weights = {self.weights} sum to {self.weights.sum():.12g}"
            raise InputError(f"{told}: expected numbers that are not negative and sum to 1")
        if not np.isfinite(self.means).all() or not (np.isfinite(self.sds) & (self.sds >= 0)).all():
            raise InputError(f"means = {self.means}, sds = {self.sds}: expected finite numbers, and sds of at least 0")

    @property
    def symmetric(self) -> bool:
        """Whether -h has the same distribution."""
        mirrored = sorted(zip(-self.means, self.sds, self.weights, strict=True))
        return np.allclose(sorted(zip(self.means, self.sds, self.weights, strict=True)), mirrored, atol=1e-14)

    def response(self, x: ArrayLike, beta: float) -> np.ndarray:
        """f(x) = E tanh(β(h + x)), for social fields x of any shape; β may be infinite."""
        return self._average(x, beta, derivative=0)

    def slope(self, x: ArrayLike, beta: float) -> np.ndarray:
        """f'(x), of the shape of x."""
        return self._average(x, beta, derivative=1)

    def commitment(self, x: ArrayLike, beta: float) -> np.ndarray:
        """E tanh²(β(h + x)), which is q of [002] Eq. 8 in the social field x."""
        return 1 - self.slope(x, beta) / beta if np.isfinite(beta) else np.ones(np.shape(x))

    def width(self, beta: float) -> float:
        """The social field over which f' changes."""
        return max(1 / beta, float(self.sds.min()))

    def _average(self, x: ArrayLike, beta: float, derivative: int) -> np.ndarray:
        at = real_numbers(x, "x")
        if beta != np.inf:
            real_number("beta", beta, above=0)
        flat = at.ravel()
        total = np.zeros(flat.shape)
        points = self.sds == 0
        if points.any():
            total += _over_points(flat, self.means[points], self.weights[points], beta, derivative)
        for w, mean, sd in zip(self.weights[~points], self.means[~points], self.sds[~points], strict=True):
            total += w * _over_normal(flat + mean, sd, beta, derivative)
        return total.reshape(at.shape)


def field_law(fields: FieldLaw | ArrayLike) -> FieldLaw:
    """The given distribution, or a sample h_i of shape (N,) as one, each with the weight 1/N."""
    if isinstance(fields, FieldLaw):
        return fields
    values = np.atleast_1d(real_numbers(fields, "fields"))
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise InputError(f"fields has shape {values.shape}: expected finite numbers, one for each agent, or a FieldLaw")
    return FieldLaw(np.full(values.size, 1 / values.size), values, np.zeros(values.size))


def _over_points(x: np.ndarray, means: np.ndarray, weights: np.ndarray, beta: float, derivative: int) -> np.ndarray:
    """Σ w tanh(β(x + mean)), or its derivative in x."""
    if not np.isfinite(beta):
        if derivative:
            raise InputError("beta = inf: fields of single values respond in steps, which have no slope")
        return np.sign(x[:, None] + means) @ weights
    total, rows = np.empty(len(x)), max(1, ATOMS_A_BLOCK // len(means))
    for first in range(0, len(x), rows):
        argument = beta * (x[first : first + rows, None] + means)
        e = np.exp(-2 * np.abs(argument)) if derivative else None
        # β sech², where 1 - tanh² would have lost all its digits
        values = np.tanh(argument) if e is None else 4 * beta * e / (1 + e) ** 2
        total[first : first + rows] = values @ weights
    return total


def _over_normal(centre: np.ndarray, sd: float, beta: float, derivative: int) -> np.ndarray:
    """E tanh(β(centre + sd·z)) for a standard normal z, or its derivative in `centre`."""
    if not np.isfinite(beta):
        u = centre / sd
        return 2 * np.exp(-0.5 * u**2) / (sd * np.sqrt(2 * np.pi)) if derivative else 2 * ndtr(u) - 1
    step = min(0.25, np.pi / (2 * beta * sd) / STEPS_A_POLE)
    number = int(np.ceil(REACH / step))
    if number > MOST_STEPS:
        raise InputError(
            f"beta = {beta:g} with sd = {sd:g}: expected a product below {MOST_STEPS / 36:g}, or beta = inf"
        )
    z = step * np.arange(-number, number + 1)
    weights = step * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return _over_points(centre, sd * z, weights, beta, derivative)
