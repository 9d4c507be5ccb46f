"""Where a population leaves an attractor: over the saddles from which the rate equation leads to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.integrate import OdeSolution

from meanfield._large_deviations.descent import Descent
from meanfield._population.reaction_model import ReactionModel
from meanfield._reactions.modes import tangent_space
from meanfield._reactions.roots import closed_face

Vector = Float[np.ndarray, " states"]

SLOWEST = 1e-3  # eigenvalue, against the fastest rate: others are as good as marginal
OFF = 1e-9  # the face: rounding
NOT_BACK = "the rate equation does not lead back from where they die out in time"


class Exit(NamedTuple):
    """A way out of an attractor, in the states of a reaction model."""

    model: ReactionModel
    face: Bool[np.ndarray, " states"]  # states that agents at the attractor may ever reach
    attractor: Vector
    saddle: Vector
    saddle_number: int  # among the fixed points
    beyond: int  # number of the attractor on the other side of the saddle, -1 if none is reached there
    decay: float  # rate of the slowest mode at the attractor
    downhill: OdeSolution  # the solution of the rate equation from next to the saddle
    duration: float  # until it is next to the attractor
    straight: bool  # whether fluctuations along the saddle fade faster than the unstable one grows
    obstacle: str  # why no path leads over the saddle, or ''


class Extinction(NamedTuple):
    """A way out of an attractor by which agents leave states for good, though the rate equation leads back to them."""

    model: ReactionModel
    face: Bool[np.ndarray, " states"]  # states that agents at the attractor may ever reach
    attractor: Vector
    saddle: Vector  # the fixed point with empty states
    saddle_number: int
    decay: float  # rate of the slowest mode at the attractor
    downhill: Any  # as in an exit, where rates are functions, or None
    duration: float
    obstacle: str  # why no path is computed, or ''

    @property
    def beyond(self) -> int:
        """The number of the fixed point where the way ends, as it is never left."""
        return self.saddle_number


def everywhere(way: Exit | Extinction, values: Float[np.ndarray, "nodes face"], elsewhere: float) -> np.ndarray:
    """Numbers for all states of the model."""
    whole = np.full((len(values), len(way.face)), elsewhere)
    whole[:, way.face] = values
    return whole


class NoExit(NamedTuple):
    """Why there is no such way; the lifetime is infinite where nothing ever leaves the attractor."""

    reason: str
    forever: bool = False


ONLY = NoExit("this is the only attractor, and no state ever dies out")

Unstable = Callable[[int], Float[np.ndarray, " two"]]
Descents = Callable[[int], tuple[Descent, Descent]]


def exits_of(
    model: ReactionModel,
    points: Float[np.ndarray, "points states"],
    status: list[str],
    number: int,
    unstable: Unstable,
    descents: Descents,
) -> list[Exit | Extinction] | NoExit:
    """The ways out of the attractor of this number: over each saddle next to it, and by each extinction.

    `unstable` gives the two leading eigenvalues at a fixed point, per unit of time, `descents` the ways down on both
    sides of a saddle.
    """
    attractor = points[number]
    face = closed_face(model, attractor > 0)
    inside = [k for k, x in enumerate(points) if k != number and x[~face].max(initial=0) <= OFF]
    if face.sum() == np.unique(model.classes[face]).size:
        return NoExit("agents at this attractor never change, so that it is never left", True)
    if "marginal" in [status[k] for k in inside]:
        return NoExit("another fixed point is marginal: linear theory does not tell whether it attracts")
    decay = -float(unstable(number)[0])
    absorbing = [k for k in inside if status[k] == "unstable" and _absorbing(model, face, points[k])]
    left = {k: set(np.flatnonzero(points[k] > OFF)) for k in absorbing}
    directly = [k for k in absorbing if not any(left[k] < others for others in left.values())]  # others die out later
    found: list[Exit | Extinction] = []
    for k in directly:
        ways = descents(k) if len(model.changes) else ()
        down = next((way for way in ways if way.attractor == number), None)
        obstacle = _slow(model, float(unstable(k)[0])) or NOT_BACK * bool(ways and down is None)
        solution, duration = (down.solution, down.duration) if down else (None, 0.0)
        found.append(Extinction(model, face, attractor, points[k], k, decay, solution, duration, obstacle))
    if not found and not any(status[k] == "stable" for k in inside):
        if _closed_elsewhere(model, face, points, status, number):
            return NoExit("agents at this attractor never reach the states of another one", True)
        return ONLY
    for k in (k for k in inside if status[k] == "unstable" and k not in absorbing):
        first, second = unstable(k)
        if second > 0:
            continue
        ways = descents(k)
        ends = [way.attractor for way in ways]
        if ends == [-1, -1]:
            return NoExit(f"the rate equation does not lead from the saddle {k} to attractors in time")
        if number in ends and ends != [number, number]:
            own, straight = ends.index(number), bool(second < -first)
            empty = "states are empty at the saddle, where noise vanishes" * bool((points[k][face] <= 0).any())
            rest = decay, *ways[own][1:], straight, _slow(model, float(first)) or empty
            found.append(Exit(model, face, attractor, points[k], k, ends[1 - own], *rest))
    return found or NoExit("the rate equation leads to it from no saddle of one unstable direction that was found")


def _slow(model: ReactionModel, growth: float) -> str:
    if growth < SLOWEST * model.fastest:
        return f"the saddle is almost marginal (eigenvalue {growth:.2g}): a path there takes too long"
    return ""


def _absorbing(model: ReactionModel, face: np.ndarray, point: Vector) -> bool:
    """Whether states of the face are empty at this fixed point and stay so, and it attracts among the others."""
    there = point > OFF
    if not (face & ~there).any() or closed_face(model, there)[face & ~there].any():
        return False
    tangent = tangent_space(model, there)
    return bool((np.linalg.eigvals(tangent.T @ model.jacobian(point) @ tangent).real < 0).all())


def _closed_elsewhere(
    model: ReactionModel, face: np.ndarray, points: np.ndarray, status: list[str], number: int
) -> bool:
    """Whether there is another attractor, in states that agents of this face never reach."""
    others = [x for k, x in enumerate(points) if k != number and status[k] == "stable"]
    return any(x[~face].max(initial=0) > OFF for x in others)
