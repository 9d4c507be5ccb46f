"""The ways out of the attractors of a policy, a population or a reaction model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from tqdm import tqdm

from meanfield._fixed_points.fixed_points import fixed_points
from meanfield._fixed_points.spectrum import spectrum
from meanfield._large_deviations.boundary_value_path import polished
from meanfield._large_deviations.descent import Descent, descents
from meanfield._large_deviations.exit_path import agents_of_reactions, exit_path, population_path
from meanfield._large_deviations.exits import Exit, NoExit, exits_of
from meanfield._large_deviations.linearised import Ends, ends_of
from meanfield._large_deviations.path import Path
from meanfield._large_deviations.prefactor import Prefactor, bend, prefactor
from meanfield._population.drift import TIME_PER_ROUND
from meanfield._population.population import Population, as_population
from meanfield._population.population_model import reaction_model
from meanfield._population.reaction_model import ReactionModel
from meanfield.toolbox._arguments import whole_number
from meanfield.toolbox._errors import InputError

Game = xr.Dataset | Population | ReactionModel

MOST_DIRECTIONS = 63  # in which compositions of a reaction model may differ
MOST_POLISHED = 20  # for collocation, and for the prefactor of reaction models
SIDEWAYS = "the path may reach the saddle sideways, where the prefactor does not hold"
MOST_BENT = 0.02  # of a path next to the saddle
KNOWN = {"word_share", "convention", "composition"}  # of the fixed points
SAME = 1e-6  # difference of barriers that are equal by symmetry


@dataclass(frozen=True, eq=False)
class Landscape:
    """The fixed points of a game, in the states of a reaction model."""

    game: Game
    points: xr.Dataset
    model: ReactionModel
    compositions: Float[np.ndarray, "points states"]

    @cached_property
    def attractors(self) -> list[int]:
        """Their numbers."""
        return np.flatnonzero(self.points["stability"].values == "stable").tolist()

    @cached_property
    def _ways_down(self) -> dict[int, tuple[Descent, Descent]]:
        return {}

    def numbered(self, fixed_point: int) -> int:
        """The number as it was given; InputError unless an attractor has it."""
        number = whole_number("fixed_point", fixed_point, 0, self.points.sizes["fixed_point"] - 1)
        status = self.points["stability"].values[number]
        if status != "stable":
            raise InputError(f"fixed_point = {number} is {status}: expected an attractor")
        return number

    def unstable(self, number: int) -> Float[np.ndarray, " two"]:
        """The two leading eigenvalues at a fixed point."""
        composition = self.points["composition"].isel(fixed_point=number)
        values = spectrum(self.game, composition)["eigenvalue"].values
        return np.append(values, [-np.inf, -np.inf])[:2]

    def descents(self, number: int) -> tuple[Descent, Descent]:
        """The ways down from the saddle of this number."""
        if number not in self._ways_down:
            goals = {k: self.compositions[k] for k in self.attractors}
            self._ways_down[number] = descents(self.model, self.compositions[number], goals)
        return self._ways_down[number]

    def ways_out(self, number: int) -> list[Exit] | NoExit:
        """Of the attractor with this number."""
        status = self.points["stability"].values.tolist()
        return exits_of(self.model, self.compositions, status, number, self.unstable, self.descents)


class Escape(NamedTuple):
    """A way out of an attractor, with its path, and the prefactor of the time that it takes."""

    way: Exit
    path: Path | None
    prefactor: Prefactor | None
    reason: str  # why one is missing, or ''

    def logarithmic_rate(self, sizes: np.ndarray, per_unit: float) -> np.ndarray:
        """log of the rate, whose time unit has `per_unit` units of the model."""
        if self.path is None or self.prefactor is None:
            return np.full(len(sizes), np.nan)
        return np.log(per_unit) - self.prefactor.logarithm - sizes * self.path.barrier

    @property
    def barrier(self) -> float:
        """NaN without a path."""
        return self.path.barrier if self.path else np.nan


def landscape(game: Game, masses: Sequence[float] | np.ndarray | None) -> Landscape:
    """All fixed points that `fixed_points` finds."""
    points = fixed_points(game, masses=masses)
    x = points["composition"].values
    if isinstance(game, ReactionModel):
        return Landscape(game, points, game, x)
    mixture = as_population(game).mixture
    own = (x.reshape(len(x), len(mixture.share), -1) * mixture.share[:, None]).reshape(len(x), -1)
    committed = mixture.committed[mixture.committed > 0]
    compositions = np.hstack([own, np.tile(committed, (len(x), 1))])
    return Landscape(game, points, reaction_model(game), compositions)


def escape(ground: Landscape, way: Exit, *, with_prefactor: bool) -> Escape:
    """The path of this way out."""
    if way.obstacle:
        return Escape(way, None, None, way.obstacle)
    directions = int(way.face.sum()) - np.unique(way.model.classes[way.face]).size
    ends = ends_of(way) if directions <= MOST_DIRECTIONS else None
    if not isinstance(ground.game, ReactionModel):
        return _of_population(way, as_population(ground.game), ends, directions, with_prefactor=with_prefactor)
    if ends is None:
        return Escape(way, None, None, f"agents of a reaction model have more than {MOST_DIRECTIONS + 1} states here")
    solved = exit_path(way, agents_of_reactions(way, ends))
    if isinstance(solved, str):
        return Escape(way, None, None, solved)
    path = solved.path
    exact = polished(path, ends, way.decay) if directions <= MOST_POLISHED else None
    if not with_prefactor:
        return Escape(way, exact or path, None, "")
    if directions > MOST_POLISHED:
        return Escape(way, path, None, f"the prefactor is computed for at most {MOST_POLISHED + 1} states")
    if exact is None:
        return Escape(way, path, None, "no exact path was found")
    if _sideways(way, exact, ends):
        return Escape(way, exact, None, SIDEWAYS)
    return Escape(way, exact, prefactor(exact, ends, way.model.fastest), "")


def _of_population(
    way: Exit, population: Population, ends: Ends | None, directions: int, *, with_prefactor: bool
) -> Escape:
    found = population_path(way, population.mixture, with_prefactor=with_prefactor)
    if isinstance(found, str):
        return Escape(way, None, None, found)
    path, width = found
    exact = polished(path, ends, way.decay) if ends is not None and directions <= MOST_POLISHED else None
    if with_prefactor and _sideways(way, exact, ends):
        return Escape(way, exact or path, None, SIDEWAYS)
    return Escape(way, exact or path, width, "the prefactor was not found" if with_prefactor and not width else "")


def _sideways(way: Exit, exact: Path | None, ends: Ends | None) -> bool:
    """Whether the path may reach the saddle along a stable direction, where φ has no second derivatives."""
    return not way.straight and (exact is None or ends is None or bend(exact, ends) > MOST_BENT)


def lowest(found: list[Escape]) -> Escape:
    """The way of the lowest barrier; of equal ones the first."""
    height = min(one.barrier for one in found)
    return next(one for one in found if one.barrier <= height * (1 + SAME))


def escapes(ground: Landscape, *, progress: bool = False) -> list[list[Escape] | NoExit]:
    """The ways out of each attractor with their prefactors."""
    ways = [ground.ways_out(number) for number in ground.attractors]
    total = sum(len(some) for some in ways if not isinstance(some, NoExit))
    with tqdm(desc="paths", unit="path", total=total, disable=not progress, leave=False) as bar:

        def found(way: Exit) -> Escape:
            one = escape(ground, way, with_prefactor=True)
            bar.update()
            return one

        return [some if isinstance(some, NoExit) else [found(way) for way in some] for some in ways]


def rate_of_leaving(found: list[Escape] | NoExit, sizes: np.ndarray, per_unit: float) -> np.ndarray:
    """log of the rate over all saddles; NaN where one is unknown."""
    if isinstance(found, NoExit):
        return np.full(len(sizes), -np.inf if found.forever else np.nan)
    return added([one.logarithmic_rate(sizes, per_unit) for one in found])


def added(logarithms: Sequence[np.ndarray]) -> np.ndarray:
    """log of the sum; NaN where one is unknown."""
    with np.errstate(invalid="ignore"):
        return np.logaddexp.reduce(logarithms, axis=0)


def time_unit(game: Game) -> tuple[float, str]:
    """How many units of the model a reported unit of time has, and its name."""
    return (1.0, game.time_unit) if isinstance(game, ReactionModel) else (float(TIME_PER_ROUND), "rounds")


def labels_of(ground: Landscape) -> xr.Dataset:
    """What tells the attractors apart."""
    known = ground.points[[name for name in ground.points if name in KNOWN]].isel(fixed_point=ground.attractors)
    kept = {"policy"} & set(ground.points.attrs)
    return known.drop_attrs(deep=False).assign_attrs({name: ground.points.attrs[name] for name in kept})
