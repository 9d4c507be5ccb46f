"""Exits from an attractor: over the saddles from which the rate equation leads to it, and by extinctions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from scipy.integrate import OdeSolution, solve_ivp

from meanfield._finite_size.law_path import eigenvalues_at
from meanfield._fixed_points.fixed_points import fixed_points
from meanfield._fixed_points.spectrum import spectrum
from meanfield._numerics.trajectory import weights_of
from meanfield._population.population import Population, as_population
from meanfield._population.population_model import reaction_model
from meanfield._population.reaction_model import ReactionModel
from meanfield._reactions.modes import tangent_space
from meanfield._reactions.roots import closed_face
from meanfield.toolbox._arguments import whole_number
from meanfield.toolbox._errors import InputError

Game = xr.Dataset | Population | ReactionModel
Vector = Float[np.ndarray, " states"]
Nodes = Float[np.ndarray, " nodes"]
# A way down from a saddle: number of the attractor where it ends, or -1 if it reaches none in time, and its duration
Descent = tuple[int, OdeSolution | None, float]

SLOWEST = 1e-3  # eigenvalue, against the fastest rate: others are as good as marginal
OFF = 1e-9  # the face: rounding
MOST_POLISHED = 20  # directions, for collocation
NOT_BACK = "the rate equation does not lead back from where they die out in time"
WITHOUT_FIELDS = (
    f"agents have rates that are functions of the composition: paths are computed in at most {MOST_POLISHED} "
    "directions only"
)
# Distances from both fixed points, against that between them, from which the way down starts and at which it ends
AT_SADDLE, AT_ATTRACTOR = 1e-2, 1e-3
LEAST = 0.5  # of a fraction at the saddle that is left where the way starts, since fractions are positive
LONGEST = 1e5  # relaxation, in units of the fastest rate


class Way(NamedTuple):
    """An exit from an attractor, in the states of a reaction model.

    Agents who die out leave states for good, though the rate equation leads back to these states.
    """

    model: ReactionModel
    face: Bool[np.ndarray, " states"]  # states that agents at the attractor may ever reach
    attractor: Vector
    saddle: Vector  # or the fixed point with empty states
    saddle_number: int  # among the fixed points
    decay: float  # rate of the slowest mode at the attractor
    beyond: int  # number of the attractor on the other side, -1 if none is reached there; the end where agents die out
    downhill: Any  # the solution of the rate equation from next to the saddle; None in an extinction with fields
    duration: float  # until it is next to the attractor
    obstacle: str  # why no path is computed, or ''
    dies_out: bool = False
    straight: bool = True  # whether fluctuations along the saddle fade faster than the unstable one grows

    def everywhere(self, values: Float[np.ndarray, "nodes face"], elsewhere: float) -> Float[np.ndarray, "nodes all"]:
        """Numbers for all states of the model."""
        whole = np.full((len(values), len(self.face)), elsewhere)
        whole[:, self.face] = values
        return whole


class Path(NamedTuple):
    """A path out of an attractor and its momentum at nodes, in the states of a face."""

    time: Nodes
    x: Float[np.ndarray, "nodes states"]
    p: Float[np.ndarray, "nodes states"]
    action: Nodes  # ∫ p·dx from the attractor
    h: Nodes  # the Hamiltonian, 0 on the exact path
    barrier: float  # action up to the saddle
    error: float  # of the barrier
    weight: Nodes  # in integrals over all times


def all_weights(time: Nodes, decay: float, growth: float) -> Nodes:
    """Weights of nodes in integrals of what has grown and decays like the momentum, at these rates, outside."""
    weights = weights_of(time)
    weights[[0, -1]] += 1 / decay, 1 / growth
    return weights


class NoExit(NamedTuple):
    """Why there is no exit; the lifetime is infinite where nothing ever leaves the attractor."""

    reason: str
    forever: bool = False


ONLY = NoExit("this is the only attractor, and no state ever dies out")


@dataclass(frozen=True, eq=False)
class Landscape:
    """The fixed points of a game, in the states of a reaction model."""

    game: Game
    points: xr.Dataset
    model: ReactionModel
    compositions: Float[np.ndarray, "points states"]
    _ways_down: dict[int, list[Descent]] = field(default_factory=dict)

    @cached_property
    def attractors(self) -> list[int]:
        """Their numbers."""
        return np.flatnonzero(self.points["stability"].values == "stable").tolist()

    def numbered(self, fixed_point: int) -> int:
        """The number as it was given; InputError unless an attractor has it."""
        number = whole_number("fixed_point", fixed_point, 0, len(self.compositions) - 1)
        status = self.points["stability"].values[number]
        if status != "stable":
            raise InputError(f"fixed_point = {number} is {status}: expected an attractor")
        return number

    def unstable(self, number: int) -> Float[np.ndarray, " two"]:
        """The two leading eigenvalues at a fixed point, per unit of time."""
        values = spectrum(self.game, self.points["composition"].isel(fixed_point=number))["eigenvalue"].values
        return np.append(values, [-np.inf, -np.inf])[:2]

    def descents(self, number: int) -> list[Descent]:
        """The ways down on both sides of a saddle: solutions of the rate equation along its unstable direction."""
        if number not in self._ways_down:
            goals = {k: self.compositions[k] for k in self.attractors}
            saddle, direction = self.compositions[number], self._unstable_direction(number)
            sides = (direction, -direction)
            self._ways_down[number] = [_descent(self.model, saddle, side, goals) for side in sides]
        return self._ways_down[number]

    def _unstable_direction(self, number: int) -> Vector:
        """The right eigenvector of the leading eigenvalue, its largest entry 1 in modulus."""
        x = self.compositions[number]
        if isinstance(self.game, ReactionModel):
            values, vectors = np.linalg.eig(self.model.jacobian(x))
            leading = vectors[:, int(values.real.argmax())].real
        else:
            mixture = as_population(self.game).mixture
            own = x[: mixture.q[..., 0].size].reshape(mixture.q.shape[:2])
            leading = eigenvalues_at(mixture, own, 2).right[0].real.ravel()
            leading = np.append(leading, np.zeros(len(x) - leading.size))  # committed agents
        return leading / np.abs(leading).max()

    def ways_out(self, number: int) -> list[Way] | NoExit:
        """The exits from the attractor with this number: over each saddle next to it, and by each extinction."""
        model, points, status = self.model, self.compositions, self.points["stability"].values.tolist()
        if len(model.changes) and model.n_states - model.n_classes > MOST_POLISHED:
            return NoExit(WITHOUT_FIELDS)
        attractor = points[number]
        face = closed_face(model, attractor > 0)
        inside = [k for k, x in enumerate(points) if k != number and x[~face].max(initial=0) <= OFF]
        if face.sum() == np.unique(model.classes[face]).size:
            return NoExit("agents at this attractor never change, so that it is never left", True)
        if "marginal" in [status[k] for k in inside]:
            return NoExit("another fixed point is marginal: linear theory does not tell whether it attracts")
        decay = -float(self.unstable(number)[0])
        absorbing = [k for k in inside if status[k] == "unstable" and _absorbing(model, face, points[k])]
        left = {k: set(np.flatnonzero(points[k] > OFF)) for k in absorbing}
        found: list[Way] = []
        for k in absorbing:
            if any(left[k] < others for others in left.values()):
                continue  # others die out later
            ways = self.descents(k) if len(model.changes) else []
            end, *downhill = next((way for way in ways if way[0] == number), (-1, None, 0.0))
            obstacle = _slow(model, float(self.unstable(k)[0])) or NOT_BACK * bool(ways and end < 0)
            found.append(Way(model, face, attractor, points[k], k, decay, k, *downhill, obstacle, dies_out=True))
        if not found and not any(status[k] == "stable" for k in inside):
            if status.count("stable") > 1:
                return NoExit("agents at this attractor never reach the states of another one", True)
            return ONLY
        for k in (k for k in inside if status[k] == "unstable" and k not in absorbing):
            first, second = self.unstable(k)
            if second > 0:
                continue
            ways = self.descents(k)
            ends = [end for end, *_ in ways]
            if ends == [-1, -1]:
                return NoExit(f"the rate equation does not lead from the saddle {k} to attractors in time")
            if number in ends and ends != [number, number]:
                own = ends.index(number)
                empty = "states are empty at the saddle, where noise vanishes" * bool((points[k][face] <= 0).any())
                rest = ends[1 - own], *ways[own][1:], _slow(model, float(first)) or empty
                found.append(Way(model, face, attractor, points[k], k, decay, *rest, straight=bool(second < -first)))
        return found or NoExit("the rate equation leads to it from no saddle of one unstable direction that was found")


def landscape(game: Game, masses: Sequence[float] | np.ndarray | None) -> Landscape:
    """All fixed points that `fixed_points` finds."""
    points = fixed_points(game, masses=masses)
    x = points["composition"].values
    if isinstance(game, ReactionModel):
        return Landscape(game, points, game, x)
    mixture = as_population(game).mixture
    own = (x.reshape(len(x), len(mixture.share), -1) * mixture.share[:, None]).reshape(len(x), -1)
    committed = mixture.committed[mixture.committed > 0]
    return Landscape(game, points, reaction_model(game), np.hstack([own, np.tile(committed, (len(x), 1))]))


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


def _descent(model: ReactionModel, saddle: Vector, direction: Vector, attractors: dict[int, Vector]) -> Descent:
    """The way down on the side of `direction`.

    Where a start on the straight line to the attractor leads there too, its way is taken, from which a path out is
    found more easily.
    """
    numbers, goals = list(attractors), np.array(list(attractors.values()))
    sizes = np.abs(goals - saddle).max(1)

    def away(x: np.ndarray) -> np.ndarray:
        return np.abs(x - goals).max(1) / sizes

    def arrived(time: float, x: np.ndarray) -> float:
        return float(away(x).min() - AT_ATTRACTOR)

    arrived.terminal = True  # type: ignore[attr-defined]

    def followed(start: Vector) -> Descent:
        span = (0.0, LONGEST / model.fastest)
        options: Any = {"events": arrived, "dense_output": True, "rtol": 1e-8, "atol": 1e-11}
        end: Any = solve_ivp(lambda _, x: model.drift(x), span, start, "DOP853", **options)
        ended = numbers[int(away(end.y[:, -1]).argmin())] if end.status == 1 else -1
        return ended, end.sol, float(end.t[-1])

    start = np.maximum(saddle + AT_SADDLE * sizes.min() * direction, LEAST * saddle)
    start *= (model.class_masses(saddle) / np.maximum(model.class_masses(start), np.finfo(float).tiny))[model.classes]
    found = followed(start)
    if found[0] < 0:
        return found
    straight = followed(saddle + AT_SADDLE * (attractors[found[0]] - saddle))
    return straight if straight[0] == found[0] else found
