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
from scipy.special import expit, logit

from meanfield import InputError
from meanfield.toolbox import one_or_several, shown
from theory.flag_game.mechanism1._parameters import PARAMETERS, Mechanism1

WEIGHTS = ("weight_T", "weight_R")
MEANS = ("mean_T", "mean_R", "mean_0")
UNIT = (*WEIGHTS, "alpha")
FARTHEST = 7.0  # from the start of a search or climb, in coordinates; data do not resolve a factor of 1,100
SHOWN = 0.3  # loadings below it are left out of the description of a direction


@dataclass(frozen=True)
class Coordinates:
    """The free parameters of a fit, and the values at which the others are held."""

    free: tuple[str, ...]
    held: Mechanism1

    @classmethod
    def of(cls, free: Sequence[str], held: Mechanism1) -> Coordinates:
        if not isinstance(held, Mechanism1):
            raise InputError(f"start = {held!r}: expected a Mechanism1, such as dataclasses.replace(APPENDIX_E, J=2.0)")
        names = one_or_several(free)
        if isinstance(free, str) or not names or any(name not in PARAMETERS or names.count(name) > 1 for name in names):
            raise InputError(f"free = {shown(free)}: expected different names out of {', '.join(PARAMETERS)}")
        return cls(tuple(name for name in PARAMETERS if name in names), held)

    def from_parameters(self, parameters: Mechanism1) -> np.ndarray:
        """The coordinates (free,) of the free parameters."""
        values = dict(zip(PARAMETERS, parameters.theta, strict=True))
        # A share's coordinate is the logarithm of its ratio to the rest.
        rests = dict.fromkeys(WEIGHTS, 1 - sum(values[name] for name in WEIGHTS)) | {"alpha": 1 - values["alpha"]}
        for name in self.free:
            if name not in MEANS and min(values[name], rests.get(name, 1.0)) <= 0:
                told = f"start.{name} = {values[name]:g}"
                raise InputError(f"{told}: a free parameter starts inside its range, not at its end")
        logs = {name: np.log(values[name] / rests.get(name, 1.0)) for name in self.free if name not in MEANS}
        return np.array([logs.get(name, values[name]) for name in self.free])

    def parameters(self, coordinates: np.ndarray) -> Mechanism1:
        values = dict(zip(PARAMETERS, theta_at(self.free, self.held.theta, coordinates).tolist(), strict=True))
        return replace(self.held, **{name: values[name] for name in self.free})

    def derivative(self, coordinates: np.ndarray) -> np.ndarray:
        """d(free parameter)/d(coordinate), shape (free, free); the weights depend on both of their coordinates."""
        with jax.enable_x64(True):
            ways = jax.jacfwd(partial(theta_at, self.free, self.held.theta))(coordinates)
        return np.asarray(ways)[[PARAMETERS.index(name) for name in self.free]]


def theta_at(free: tuple[str, ...], held: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
    """The values of PARAMETERS (14,), those that are `free` from coordinates, the others as held; in NumPy or JAX."""
    xp = coordinates.__array_namespace__()
    given, values = dict(zip(free, coordinates, strict=True)), dict(zip(PARAMETERS, held, strict=True))
    shares = {name: xp.exp(given[name]) for name in WEIGHTS if name in given}
    room = 1 - sum(values[name] for name in WEIGHTS if name not in given)
    for name, at in given.items():
        if name in WEIGHTS:
            values[name] = room * shares[name] / (1 + sum(shares.values()))
        else:
            values[name] = at if name in MEANS else 1 / (1 + xp.exp(-at)) if name == "alpha" else xp.exp(at)
    return xp.stack([xp.asarray(value) for value in values.values()])


def interval_of(name: str, value: float, standard_error: float, z: float) -> np.ndarray:
    """value ± z standard errors on the scale of the coordinate, so that the interval stays in the parameter's range."""
    to, back, slope = np.positive, np.positive, 1.0
    if name in UNIT:
        to, back, slope = logit, expit, 1 / (value * (1 - value))
    elif name not in MEANS:
        to, back, slope = np.log, np.exp, 1 / value
    with np.errstate(over="ignore"):  # the interval of an unknown parameter reaches to infinity
        return back(to(value) + np.array([-z, z]) * slope * standard_error)


def describe(direction: np.ndarray, names: Sequence[str]) -> str:
    """A direction as text, such as '0.83 ln J + 0.51 ln beta', the largest first, without small loadings."""
    order = [i for i in np.argsort(-np.abs(direction)) if np.abs(direction[i]) >= SHOWN]
    terms = [f"{'-' if direction[i] < 0 else '+'} {abs(direction[i]):.2f} {_scale(names[i])}" for i in order]
    return " ".join(terms).removeprefix("+ ")


def _scale(name: str) -> str:
    """The coordinate as a function of its parameter, as text; weight_0 is 1 - weight_T - weight_R."""
    if name in WEIGHTS:
        return f"ln({name}/weight_0)"
    return name if name in MEANS else f"logit {name}" if name == "alpha" else f"ln {name}"
