"""The escape paths of the attractors of a game, and how often N agents take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from tqdm import tqdm

from meanfield._finite_size.moments import validate_sizes
from meanfield._large_deviations.birth_death import ExactRates, exact_rates
from meanfield._large_deviations.boundary_value_path import followed, polished
from meanfield._large_deviations.exit_path import NO_PATH, WRONG, agents_of, exit_path, path_prefactor
from meanfield._large_deviations.exits import (
    MOST_POLISHED,
    WITHOUT_FIELDS,
    Game,
    Landscape,
    NoExit,
    Path,
    Way,
    landscape,
)
from meanfield._large_deviations.extinction import absorbing_end
from meanfield._large_deviations.linearised import ends_of
from meanfield._large_deviations.prefactor import Prefactor, transported
from meanfield._population.drift import TIME_PER_ROUND
from meanfield._population.population import as_population
from meanfield._population.provenance import stamp
from meanfield._population.reaction_model import ReactionModel
from meanfield.toolbox._arguments import shown
from meanfield.toolbox._columns import Columns, labelled

MOST_DIRECTIONS = 63  # in which compositions of a reaction model may differ
SIDEWAYS = "the path may reach the saddle sideways, where the prefactor does not hold"
MOST_BENT = 0.02  # of a path next to the saddle
KNOWN = {"word_share", "convention", "label", "composition"}  # of the fixed points
SAME = 1e-6  # difference of barriers that are equal by symmetry
METHODS = "instantons and their prefactors", "exact chain of N agents up to N = 100,000; barriers by instantons"


class Escape(NamedTuple):
    """An exit from an attractor, with its path, and the prefactor of the time that it takes."""

    way: Way
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

    @property
    def error(self) -> float:
        """The error of the barrier."""
        return self.path.error if self.path else np.nan


def escape(ground: Landscape, way: Way, *, with_prefactor: bool) -> Escape:
    """The path of this exit: from fields, or directly where there are few states and fields lead to none."""
    if way.obstacle:
        return Escape(way, None, None, way.obstacle)
    directions = int(way.face.sum()) - np.unique(way.model.classes[way.face]).size
    absorbing = None
    if way.dies_out and len(way.model.changes):
        absorbing = absorbing_end(way.model.game, way.saddle, way.face, way.model.classes)
        if isinstance(absorbing, str):
            return Escape(way, None, None, absorbing)
    ends = ends_of(way, absorbing) if absorbing or (not way.dies_out and directions <= MOST_DIRECTIONS) else None
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
    # A path that reaches the saddle along a stable direction, where φ has no second derivatives
    sideways = not way.straight and (exact is None or ends is None or ends.bend(exact) > MOST_BENT)
    reason = slow or SIDEWAYS * sideways
    if reason or not with_prefactor:
        return Escape(way, path, None, reason if with_prefactor else "")
    prefactor = prefactor_of()
    return Escape(way, path, prefactor, "" if prefactor else "the prefactor was not found")


def lowest(found: list[Escape]) -> Escape | None:
    """The exit with the lowest barrier, the first of equal ones; None where a barrier is unknown."""
    height = min(one.barrier for one in found)
    known = all(one.path for one in found)
    return next(one for one in found if one.barrier <= height * (1 + SAME)) if known else None


def added(logarithms: Sequence[np.ndarray]) -> np.ndarray:
    """log of the sum; NaN where one is unknown."""
    with np.errstate(invalid="ignore"):
        return np.logaddexp.reduce(logarithms, axis=0)


@dataclass(frozen=True)
class Escapes:
    """The exits from each attractor with their prefactors, and how often N agents take them."""

    ground: Landscape
    sizes: Int[np.ndarray, " sizes"]
    found: list[list[Escape] | NoExit]
    exact: ExactRates | None
    per_unit: float  # units of the model's time in a reported one
    unit: str
    leaving: Float[np.ndarray, "attractors sizes"]  # log of the rates over all exits; NaN where one is unknown

    @property
    def lifetime(self) -> tuple:
        """Mean time that N agents stay at each attractor, as a column."""
        with np.errstate(over="ignore"):
            return ("fixed_point", "n_agents"), np.exp(-self.leaving), "mean lifetime", self.unit

    @property
    def too_few(self) -> str:
        """At which sizes an exact chain is too small for rates, or ''."""
        if self.exact is None:
            return ""
        lost = self.sizes[self.exact.few][np.isnan(self.exact.leaving).all(0)]
        found = f"at N = {shown(lost.tolist())} agents are too few to tell the attractor from where they go"
        return found if len(lost) else ""

    def labelled(self, kind: str, columns: Columns, coords: Mapping[str, Any], **attrs: str) -> xr.Dataset:
        """A result with the names of the attractors."""
        sizes = ("n_agents", self.sizes, {"long_name": "number of agents"})
        points = self.ground.points
        labels = points[[name for name in points if name in KNOWN]].isel(fixed_point=self.ground.attractors)
        kept = {name: points.attrs[name] for name in {"policy"} & {*points.attrs}}
        result = labelled(columns, {"n_agents": sizes, **coords}).merge(labels.drop_attrs(deep=False))
        result = result.assign_attrs(kept, method=METHODS[bool(self.exact)], **attrs)
        game = self.ground.game
        return stamp(result, kind, None if isinstance(game, ReactionModel) else game)


def escapes(policy: Game, n_agents: Any, masses: Sequence[float] | np.ndarray | None, progress: bool) -> Escapes:
    """The exits from all attractors; InputError unless `n_agents` are sizes."""
    sizes = validate_sizes(n_agents)
    ground = landscape(policy, masses)
    ways = [ground.ways_out(number) for number in ground.attractors]
    total = sum(len(some) for some in ways if not isinstance(some, NoExit))
    found: list[list[Escape] | NoExit] = []
    with tqdm(desc="paths", unit="path", total=total, disable=not progress, leave=False) as bar:
        for some in ways:
            found.append(some if isinstance(some, NoExit) else [])
            for way in () if isinstance(some, NoExit) else some:
                found[-1].append(escape(ground, way, with_prefactor=True))
                bar.update()
    model = policy if isinstance(policy, ReactionModel) else None
    per_unit, unit = (float(TIME_PER_ROUND), "rounds") if model is None else (1.0, model.time_unit)
    leaving = np.full((len(found), len(sizes)), np.nan)
    for row, some in zip(leaving, found, strict=True):
        if isinstance(some, NoExit):
            row[:] = -np.inf if some.forever else np.nan
        else:
            row[:] = added([one.logarithmic_rate(sizes, per_unit) for one in some])
    exact = exact_rates(ground, sizes)
    if exact:
        leaving[:, exact.few] = exact.leaving
    return Escapes(ground, sizes, found, exact, per_unit, unit, leaving)
