"""The barrier of an attractor, and how it changes with the policies of its agents."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from meanfield._large_deviations.escape import Landscape
from meanfield._large_deviations.exit_path import agents_of, exit_path, path_prefactor
from meanfield._large_deviations.exits import Exit, Extinction, NoExit
from meanfield._large_deviations.path import Path
from meanfield._large_deviations.random_fields import Prefactor
from meanfield._population.drift import TIME_PER_ROUND
from meanfield._population.mixture import Mixture
from meanfield._population.population import as_population
from meanfield.core._path_search import action_gradient, action_rates

Kinds = Float[np.ndarray, "kinds states"]


class Barrier(NamedTuple):
    """The escape from an attractor. The path comes from auxiliary fields: collocation takes ten times as long."""

    way: Exit
    growth: float  # the saddle's unstable eigenvalue
    path: Path
    prefactor: Prefactor | None

    def lifetime(self, n_agents: int) -> float:
        """The mean lifetime in rounds, NaN without the prefactor, infinite beyond 1e308."""
        if self.prefactor is None:
            return np.nan
        with np.errstate(over="ignore"):
            return float(np.exp(self.prefactor.logarithm + n_agents * self.path.barrier) / TIME_PER_ROUND)

    def lifetime_error(self, n_agents: int) -> float:
        """Relative error of the lifetime from the errors of barrier and prefactor."""
        return np.nan if self.prefactor is None else self.prefactor.error + n_agents * self.path.error


def barrier_of(ground: Landscape, number: int, *, with_prefactor: bool) -> Barrier | NoExit:
    """The barrier of the attractor with this number, or why it has none; InputError unless it is an attractor."""
    ways = ground.ways_out(ground.numbered(number))
    if isinstance(ways, NoExit):
        return ways
    if len(ways) > 1:
        return NoExit(f"there are {len(ways)} ways out of it: expected one")
    (way,) = ways
    if way.obstacle:
        return NoExit(way.obstacle)
    if isinstance(way, Extinction):
        return NoExit("agents leave it by an extinction: expected a saddle")
    agents = agents_of(way, as_population(ground.game).mixture, None)
    if isinstance(agents, str):
        return NoExit(agents)
    solved = exit_path(way, agents)
    if isinstance(solved, str):
        return NoExit(solved)
    prefactor = path_prefactor(solved, way, agents) if with_prefactor and way.straight else None
    return Barrier(way, agents.ending.growth, solved.path, prefactor)


def barrier_slope(mixture: Mixture, barrier: Barrier) -> tuple[Kinds, Kinds]:
    """The derivative of Δ by the probability of the first word of two, and x weighted by its part of the action."""
    way, growth, path, _ = barrier
    (kinds, n_states), nodes = mixture.q.shape[:2], len(path.x)
    x, p = (_everywhere(way, values)[:, : kinds * n_states].reshape(nodes, kinds, -1) for values in (path.x, path.p))
    by_q, *_ = action_gradient(tuple(mixture), x, p, path.weight)
    work, _ = action_rates(tuple(mixture), x, p)
    work[[0, -1]] *= 1 - 1 / (2 * path.weight[[0, -1]] * [way.decay, growth])  # it decays twice as fast as p
    passed = np.tensordot(path.weight * work, x, 1)
    return by_q[..., 0] - by_q[..., 1], passed / passed.sum()


def _everywhere(way: Exit, values: np.ndarray) -> np.ndarray:
    whole = np.zeros((len(values), len(way.face)))
    whole[:, way.face] = values
    return whole
