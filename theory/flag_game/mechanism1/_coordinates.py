"""Parameters on scales without bounds, on which a search moves and standard errors are symmetric.

Means stay as they are; α becomes its logit; the two weights, where both are free, become their log-ratios to what is
left, and one alone the logit of its share of what the other leaves; all else becomes its logarithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanfield import InputError
from theory.flag_game.mechanism1._parameters import PARAMETERS, Mechanism1

WEIGHTS = ("weight_T", "weight_R")
MEANS = ("mean_T", "mean_R", "mean_0")
UNIT = (*WEIGHTS, "alpha")
FARTHEST = 7.0  # from where a search or climb starts, in coordinates; a factor of 1,100 is more than data tell apart


def theta_of(parameters: Mechanism1) -> np.ndarray:
    """The values of PARAMETERS, shape (14,)."""
    return np.array([getattr(parameters, name) for name in PARAMETERS], dtype=float)


@dataclass(frozen=True)
class Coordinates:
    """The free parameters of a fit, and the values at which the others are held."""

    free: tuple[str, ...]
    held: Mechanism1

    @classmethod
    def of(cls, free: Sequence[str], held: Mechanism1) -> Coordinates:
        if isinstance(free, str) or not free or len(set(free)) < len(free) or not set(free) <= set(PARAMETERS):
            raise InputError(f"free = {free!r}: expected different names out of {', '.join(PARAMETERS)}")
        return cls(tuple(name for name in PARAMETERS if name in free), held)

    def from_parameters(self, parameters: Mechanism1) -> np.ndarray:
        """The coordinates (free,) of parameters; those that are held are not looked at."""
        values = np.array([getattr(parameters, name) for name in self.free], dtype=float)
        rest = self._room(1 - sum(getattr(parameters, name) for name in WEIGHTS), parameters)
        coordinates = np.empty(len(self.free))
        for i, (name, value) in enumerate(zip(self.free, values, strict=True)):
            other = rest if name in WEIGHTS else 1 - value
            if name not in MEANS and (value <= 0 or (name in UNIT and other <= 0)):
                raise InputError(f"start.{name} = {value:g}: a free parameter starts inside its range, not at its end")
            coordinates[i] = value if name in MEANS else np.log(value / other) if name in UNIT else np.log(value)
        return coordinates

    def theta(self, coordinates: Any) -> Any:
        """All of PARAMETERS, shape (14,), as NumPy or JAX arrays."""
        xp = coordinates.__array_namespace__()
        given = {name: coordinates[i] for i, name in enumerate(self.free)}
        shares = {name: xp.exp(given[name]) for name in WEIGHTS if name in given}
        room = 1 - sum(getattr(self.held, name) for name in WEIGHTS if name not in given)
        values = []
        for name in PARAMETERS:
            if name not in given:
                values.append(xp.asarray(float(getattr(self.held, name))))
            elif name in WEIGHTS:
                values.append(room * shares[name] / (1 + sum(shares.values())))
            elif name == "alpha":
                values.append(1 / (1 + xp.exp(-given[name])))
            else:
                values.append(given[name] if name in MEANS else xp.exp(given[name]))
        return xp.stack(values)

    def parameters(self, coordinates: np.ndarray) -> Mechanism1:
        theta = self.theta(coordinates)
        return replace(self.held, **{name: float(theta[PARAMETERS.index(name)]) for name in self.free})

    def derivative(self, coordinates: np.ndarray) -> np.ndarray:
        """d(free parameter)/d(coordinate), shape (free, free); the weights depend on both of their coordinates."""
        step = 1e-6
        columns = []
        for i in range(len(self.free)):
            move = step * (np.arange(len(self.free)) == i)
            columns.append((self._free_values(coordinates + move) - self._free_values(coordinates - move)) / (2 * step))
        return np.stack(columns, axis=-1)

    def _free_values(self, coordinates: np.ndarray) -> np.ndarray:
        theta = self.theta(coordinates)
        return np.array([theta[PARAMETERS.index(name)] for name in self.free])

    @staticmethod
    def _room(rest: float, parameters: Mechanism1) -> float:
        if rest < -1e-12:
            raise InputError(f"weights {parameters.weight_T}, {parameters.weight_R}: expected a sum of at most 1")
        return rest


def interval_of(name: str, value: float, standard_error: float, z: float) -> tuple[float, float]:
    """value ± z standard errors, taken on the scale of the parameter so that it stays in its range."""
    if name in MEANS:
        return value - z * standard_error, value + z * standard_error
    slope = 1 / (value * (1 - value)) if name in UNIT else 1 / value
    centre = np.log(value / (1 - value)) if name in UNIT else np.log(value)
    ends = centre + np.array([-z, z]) * slope * standard_error
    with np.errstate(over="ignore", divide="ignore"):  # the interval of what is not known at all reaches to infinity
        low, high = np.exp(ends)
        return (1 / (1 + 1 / low), 1 / (1 + 1 / high)) if name in UNIT else (low, high)
