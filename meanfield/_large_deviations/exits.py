"""Where a population leaves an attractor: over the saddle from which the rate equation leads to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.integrate import OdeSolution, solve_ivp

from meanfield._population.reaction_model import ReactionModel
from meanfield._reactions.roots import closed_face

Vector = Float[np.ndarray, " states"]

SLOWEST = 1e-3  # eigenvalue, against the fastest rate: others are as good as marginal
# Distances from both fixed points, against that between them, from which the way down starts and at which it ends
AT_SADDLE, AT_ATTRACTOR = 1e-2, 1e-3
OFF = 1e-9  # the face: rounding
LONGEST = 1e5  # relaxation, in units of the fastest rate


class Exit(NamedTuple):
    """A way out of an attractor, in the states of a reaction model."""

    model: ReactionModel
    face: Bool[np.ndarray, " states"]  # states that agents at the attractor may ever reach
    attractor: Vector
    saddle: Vector
    saddle_number: int  # among the fixed points
    decay: float  # rate of the slowest mode at the attractor
    downhill: OdeSolution  # the solution of the rate equation from next to the saddle
    duration: float  # until it is next to the attractor

    def uphill(self, times: Float[np.ndarray, " times"]) -> Float[np.ndarray, "times states"]:
        """The same in reverse."""
        return self.downhill(self.duration - times).T


class NoExit(NamedTuple):
    """Why there is no such way; the lifetime is infinite where nothing ever leaves the attractor."""

    reason: str
    forever: bool = False


Unstable = Callable[[int], Float[np.ndarray, " two"]]


def exit_of(
    model: ReactionModel, points: Float[np.ndarray, "points states"], status: list[str], number: int, unstable: Unstable
) -> Exit | NoExit:
    """The way out of the attractor of this number, if there is a single one.

    `unstable` gives the two leading eigenvalues at a fixed point, per unit of time.
    """
    attractor = points[number]
    face = closed_face(model, attractor > 0)
    inside = [k for k, x in enumerate(points) if k != number and x[~face].max(initial=0) <= OFF]
    if face.sum() == np.unique(model.classes[face]).size:
        return NoExit("agents at this attractor never change, so that it is never left", True)
    if "marginal" in [status[k] for k in inside]:
        return NoExit("another fixed point is marginal: linear theory does not tell whether it attracts")
    if not any(status[k] == "stable" for k in inside):
        if _closed_elsewhere(model, face, points, status, number):
            return NoExit("agents at this attractor never reach the states of another one", True)
        return NoExit("this is the only attractor; extinctions are not covered")
    decay = -float(unstable(number)[0])
    found = [_approach(model, face, attractor, points[k], k, decay) for k in inside if status[k] == "unstable"]
    adjacent = [one for one in found if one is not None]
    if len(adjacent) != 1:
        return NoExit(f"the rate equation leads to it from {len(adjacent)} unstable fixed points: expected one saddle")
    (way,) = adjacent
    first, second = unstable(way.saddle_number)
    if second > 0:
        return NoExit(f"the saddle has two unstable directions (eigenvalues {first:.2g}, {second:.2g})")
    if first < SLOWEST * model.fastest:
        return NoExit(f"the saddle is almost marginal (eigenvalue {first:.2g}): a path there takes too long")
    if (way.saddle[face] <= 0).any():
        return NoExit("states are empty at the saddle, where noise vanishes: extinction is not covered")
    return way


def _closed_elsewhere(
    model: ReactionModel, face: np.ndarray, points: np.ndarray, status: list[str], number: int
) -> bool:
    """Whether there is another attractor, in states that agents of this face never reach."""
    others = [x for k, x in enumerate(points) if k != number and status[k] == "stable"]
    return any(x[~face].max(initial=0) > OFF for x in others)


def _approach(
    model: ReactionModel, face: np.ndarray, attractor: Vector, saddle: Vector, number: int, decay: float
) -> Exit | None:
    """The solution from next to an unstable fixed point towards the attractor, or None if it does not end there."""
    size = np.abs(saddle - attractor).max()

    def rate(time: float, x: np.ndarray) -> np.ndarray:
        return model.drift(x)

    def arrived(time: float, x: np.ndarray) -> float:
        return float(np.abs(x - attractor).max() - AT_ATTRACTOR * size)

    arrived.terminal = True  # type: ignore[attr-defined]
    start = saddle + AT_SADDLE * (attractor - saddle)
    span = (0.0, LONGEST / model.fastest)
    end = solve_ivp(rate, span, start, "DOP853", events=arrived, dense_output=True, rtol=1e-8, atol=1e-11)
    if end.status != 1 or end.sol is None:
        return None
    return Exit(model, face, attractor, saddle, number, decay, end.sol, float(end.t[-1]))
