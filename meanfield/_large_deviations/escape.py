"""The ways out of the attractors of a policy, a population or a reaction model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float

from meanfield._fixed_points.fixed_points import fixed_points
from meanfield._fixed_points.spectrum import spectrum
from meanfield._large_deviations.boundary_value_path import polished
from meanfield._large_deviations.exits import Exit, NoExit, exit_of
from meanfield._large_deviations.linearised import Ends, ends_of
from meanfield._large_deviations.path import Path
from meanfield._large_deviations.population_messages import population_path
from meanfield._large_deviations.prefactor import Prefactor, prefactor
from meanfield._large_deviations.reaction_messages import reaction_path
from meanfield._population.population import Population, as_population
from meanfield._population.population_model import reaction_model
from meanfield._population.reaction_model import ReactionModel

Game = xr.Dataset | Population | ReactionModel

MOST_DIRECTIONS = 63  # in which compositions of a reaction model may differ
MOST_POLISHED = 20  # for collocation, and for the prefactor of reaction models


class Landscape(NamedTuple):
    """The fixed points of a game, in the states of a reaction model."""

    game: Game
    points: xr.Dataset
    model: ReactionModel
    compositions: Float[np.ndarray, "points states"]

    def unstable(self, number: int) -> Float[np.ndarray, " two"]:
        """The two leading eigenvalues at a fixed point."""
        composition = self.points["composition"].isel(fixed_point=number)
        values = spectrum(self.game, composition)["eigenvalue"].values
        return np.append(values, [-np.inf, -np.inf])[:2]

    def way_out(self, number: int) -> Exit | NoExit:
        """Of the attractor with this number."""
        status = self.points["stability"].values.tolist()
        return exit_of(self.model, self.compositions, status, number, self.unstable)


class Escape(NamedTuple):
    """A path out of an attractor, and the prefactor of the lifetime if it was wanted and found."""

    way: Exit
    path: Path
    prefactor: Prefactor | None


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


def escape(ground: Landscape, number: int, *, with_prefactor: bool) -> Escape | NoExit:
    """The path out of the attractor with this number, or why there is none."""
    way = ground.way_out(number)
    if isinstance(way, NoExit):
        return way
    directions = int(way.face.sum()) - np.unique(way.model.classes[way.face]).size
    ends = ends_of(way) if directions <= MOST_DIRECTIONS else None
    if not isinstance(ground.game, ReactionModel):
        return _of_population(way, as_population(ground.game), ends, directions, with_prefactor=with_prefactor)
    if ends is None:
        return NoExit(f"agents of a reaction model have more than {MOST_DIRECTIONS + 1} states here")
    path = reaction_path(way, ends)
    if isinstance(path, str):
        return NoExit(path)
    exact = polished(path, ends, way.decay) if directions <= MOST_POLISHED else None
    wanted = exact is not None and with_prefactor
    return Escape(way, exact or path, prefactor(exact, ends, way.model.fastest) if wanted else None)


def _of_population(
    way: Exit, population: Population, ends: Ends | None, directions: int, *, with_prefactor: bool
) -> Escape | NoExit:
    found = population_path(way, population, with_prefactor=with_prefactor)
    if isinstance(found, str):
        return NoExit(found)
    path, width = found
    exact = polished(path, ends, way.decay) if ends is not None and directions <= MOST_POLISHED else None
    return Escape(way, exact or path, width)
