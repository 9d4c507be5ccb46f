"""The escape paths of the attractors of a policy, a population or a reaction model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from tqdm import tqdm

from meanfield._fixed_points.fixed_points import fixed_points
from meanfield._fixed_points.spectrum import spectrum
from meanfield._large_deviations.boundary_value_path import followed, polished
from meanfield._large_deviations.descent import Descent, descents
from meanfield._large_deviations.exit_path import NO_PATH, WRONG, agents_of, exit_path, path_prefactor
from meanfield._large_deviations.exits import OFF, Exit, Extinction, NoExit, exits_of
from meanfield._large_deviations.extinction import absorbing_end
from meanfield._large_deviations.linearised import Ends, bend, ends_of
from meanfield._large_deviations.path import Path
from meanfield._large_deviations.random_fields import Prefactor
from meanfield._large_deviations.transport import transported
from meanfield._population.drift import TIME_PER_ROUND
from meanfield._population.population import Population, as_population
from meanfield._population.population_model import reaction_model
from meanfield._population.reaction_model import ReactionModel
from meanfield.toolbox._arguments import whole_number
from meanfield.toolbox._errors import InputError

Game = xr.Dataset | Population | ReactionModel

MOST_DIRECTIONS = 63  # in which compositions of a reaction model may differ
MOST_POLISHED = 20  # for collocation
SIDEWAYS = "the path may reach the saddle sideways, where the prefactor does not hold"
MOST_BENT = 0.02  # of a path next to the saddle
WITHOUT_FIELDS = (
    f"agents have rates that are functions of the composition: paths are computed in at most {MOST_POLISHED} "
    "directions only"
)
KNOWN = {"word_share", "convention", "label", "composition"}  # of the fixed points
SAME = 1e-6  # difference of barriers that are equal by symmetry


@dataclass(frozen=True, eq=False)
class Landscape:
    """The fixed points of a game, in the states of a reaction model."""

    game: Game
    points: xr.Dataset
    model: ReactionModel
    compositions: Float[np.ndarray, "points states"]
    _ways_down: dict[int, tuple[Descent, Descent]] = field(default_factory=dict)

    @cached_property
    def attractors(self) -> list[int]:
        """Their numbers."""
        return np.flatnonzero(self.points["stability"].values == "stable").tolist()

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

    def ways_out(self, number: int) -> list[Exit | Extinction] | NoExit:
        """Ways out of the attractor with this number."""
        if len(self.model.changes) and self.model.n_states - self.model.n_classes > MOST_POLISHED:
            return NoExit(WITHOUT_FIELDS)
        status = self.points["stability"].values.tolist()
        return exits_of(self.model, self.compositions, status, number, self.unstable, self.descents)


class Escape(NamedTuple):
    """A way out of an attractor, with its path, and the prefactor of the time that it takes."""

    way: Exit | Extinction
    path: Path | None
    prefactor: Prefactor | None
    reason: str  # why one is missing, or ''

    def logarithmic_rate(self, sizes: np.ndarray, per_unit: float) -> np.ndarray:
        """log of the rate, whose time unit has `per_unit` units of the model."""
        if self.path is None or self.prefactor is None:
            return np.full(len(sizes), np.nan)
        prefactor = self.prefactor.logarithm + self.prefactor.power * np.log(sizes)
        return np.log(per_unit) - prefactor - sizes * self.path.barrier

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


def escape(ground: Landscape, way: Exit | Extinction, *, with_prefactor: bool) -> Escape:
    """The path of this way out: from fields, or directly where there are few states and fields lead to none."""
    if way.obstacle:
        return Escape(way, None, None, way.obstacle)
    directions = int(way.face.sum()) - np.unique(way.model.classes[way.face]).size
    absorbing = None
    if isinstance(way, Extinction) and len(way.model.changes):
        empty = np.where(way.saddle > OFF, way.saddle, 0.0)
        absorbing = absorbing_end(way.model.game, empty, way.face, way.model.classes)
        if isinstance(absorbing, str):
            return Escape(way, None, None, absorbing)
    to_saddle = isinstance(way, Exit)
    ends = ends_of(way, absorbing) if absorbing or (to_saddle and directions <= MOST_DIRECTIONS) else None
    mixture = None if isinstance(ground.game, ReactionModel) else as_population(ground.game).mixture
    agents = WITHOUT_FIELDS if len(way.model.changes) else agents_of(way, mixture, ends)
    solved = agents if isinstance(agents, str) else exit_path(way, agents)
    few = ends if directions <= MOST_POLISHED else None
    if isinstance(agents, str) or isinstance(solved, str):
        if few is None:
            return Escape(way, None, None, str(solved))
        path = followed(way, few)
        if path is None or not path.error < WRONG * path.barrier:
            return Escape(way, None, None, NO_PATH if agents == WITHOUT_FIELDS else str(solved))
        exact, slow, prefactor_of = path, absorbing.slow if absorbing else "", partial(transported, path, few)
    else:
        exact = polished(solved.path, few, way.decay) if few else None
        path, prefactor_of = exact or solved.path, partial(path_prefactor, solved, way, agents)
        slow = agents.end.slow if agents.end else ""
    reason = slow or (SIDEWAYS if _sideways(way, exact, ends) else "")
    if reason or not with_prefactor:
        return Escape(way, path, None, reason if with_prefactor else "")
    prefactor = prefactor_of()
    return Escape(way, path, prefactor, "" if prefactor else "the prefactor was not found")


def _sideways(way: Exit | Extinction, exact: Path | None, ends: Ends | None) -> bool:
    """Whether the path may reach the saddle along a stable direction, where φ has no second derivatives."""
    straight = isinstance(way, Extinction) or way.straight
    return not straight and (exact is None or ends is None or bend(exact, ends) > MOST_BENT)


def lowest(found: list[Escape]) -> Escape:
    """The way of the lowest barrier; of equal ones the first."""
    height = min(one.barrier for one in found)
    return next(one for one in found if one.barrier <= height * (1 + SAME))


def escapes(ground: Landscape, *, progress: bool = False) -> list[list[Escape] | NoExit]:
    """The ways out of each attractor with their prefactors."""
    ways = [ground.ways_out(number) for number in ground.attractors]
    total = sum(len(some) for some in ways if not isinstance(some, NoExit))
    with tqdm(desc="paths", unit="path", total=total, disable=not progress, leave=False) as bar:

        def found(way: Exit | Extinction) -> Escape:
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
    """Units of the model in a reported unit of time, and the name of the latter."""
    return (1.0, game.time_unit) if isinstance(game, ReactionModel) else (float(TIME_PER_ROUND), "rounds")


def labels_of(ground: Landscape) -> xr.Dataset:
    """Names that tell the attractors apart."""
    known = ground.points[[name for name in ground.points if name in KNOWN]].isel(fixed_point=ground.attractors)
    kept = {"policy"} & set(ground.points.attrs)
    return known.drop_attrs(deep=False).assign_attrs({name: ground.points.attrs[name] for name in kept})
