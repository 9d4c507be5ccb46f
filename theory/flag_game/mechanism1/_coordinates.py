"""Parameters on scales without bounds, on which a search moves and standard errors are symmetric.

Means stay as they are, α becomes its logit, and all else its logarithm. Two free weights become their log-ratios to the
rest of the total; one free weight becomes the logit of its share of what the other leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import jax
import numpy as np

from meanfield import InputError
from theory.flag_game.mechanism1._parameters import PARAMETERS, Mechanism1

WEIGHTS = ("weight_T", "weight_R")
MEANS = ("mean_T", "mean_R", "mean_0")
UNIT = (*WEIGHTS, "alpha")
FARTHEST = 7.0  # from the start of a search or climb, in coordinates; data do not resolve a factor of 1,100


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
        """The coordinates (free,) of the free parameters."""
        values = np.array([getattr(parameters, name) for name in self.free], dtype=float)
        rest = 1 - sum(getattr(parameters, name) for name in WEIGHTS)
        coordinates = np.empty(len(self.free))
        for i, (name, value) in enumerate(zip(self.free, values, strict=True)):
            other = rest if name in WEIGHTS else 1 - value
            if name not in MEANS and (value <= 0 or (name in UNIT and other <= 0)):
                raise InputError(f"start.{name} = {value:g}: a free parameter starts inside its range, not at its end")
            coordinates[i] = value if name in MEANS else np.log(value / other) if name in UNIT else np.log(value)
        return coordinates

    def theta(self, coordinates: np.ndarray) -> np.ndarray:
        """The values of PARAMETERS, shape (14,)."""
        return theta_at(self.free, theta_of(self.held), coordinates)

    def parameters(self, coordinates: np.ndarray) -> Mechanism1:
        theta = self.theta(coordinates)
        return replace(self.held, **{name: float(theta[PARAMETERS.index(name)]) for name in self.free})

    def derivative(self, coordinates: np.ndarray) -> np.ndarray:
        """d(free parameter)/d(coordinate), shape (free, free); the weights depend on both of their coordinates."""
        with jax.enable_x64(True):
            ways = jax.jacfwd(partial(theta_at, self.free, theta_of(self.held)))(coordinates)
        return np.asarray(ways)[[PARAMETERS.index(name) for name in self.free]]


def theta_at(free: tuple[str, ...], held: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
    """The values of PARAMETERS (14,), those that are `free` from coordinates, the others as held; in NumPy or JAX."""
    xp = coordinates.__array_namespace__()
    given, kept = dict(zip(free, coordinates, strict=True)), dict(zip(PARAMETERS, held, strict=True))
    shares = {name: xp.exp(given[name]) for name in WEIGHTS if name in given}
    room = 1 - sum(kept[name] for name in WEIGHTS if name not in given)
    values = []
    for name in PARAMETERS:
        if name not in given:
            values.append(kept[name])
        elif name in WEIGHTS:
            values.append(room * shares[name] / (1 + sum(shares.values())))
        elif name == "alpha":
            values.append(1 / (1 + xp.exp(-given[name])))
        else:
            values.append(given[name] if name in MEANS else xp.exp(given[name]))
    return xp.stack([xp.asarray(value) for value in values])


def interval_of(name: str, value: float, standard_error: float, z: float) -> tuple[float, float]:
    """value ± z standard errors on the scale of the coordinate, so that the interval stays in the parameter's range."""
    if name in MEANS:
        return value - z * standard_error, value + z * standard_error
    slope = 1 / (value * (1 - value)) if name in UNIT else 1 / value
    centre = np.log(value / (1 - value)) if name in UNIT else np.log(value)
    ends = centre + np.array([-z, z]) * slope * standard_error
    with np.errstate(over="ignore", divide="ignore"):  # the interval of an unknown parameter reaches to infinity
        low, high = np.exp(ends)
        return (1 / (1 + 1 / low), 1 / (1 + 1 / high)) if name in UNIT else (low, high)
