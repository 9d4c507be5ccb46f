"""The barrier of an attractor of one policy, and how it changes with the policy (`action_rates`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield._finite_size import message_kernel as kernel
from meanfield._finite_size.action_rates import action_slope
from meanfield._finite_size.least_change import Slope, weights_of
from meanfield._finite_size.path_equations import PathEquations
from meanfield._large_deviations.escape import Landscape
from meanfield._large_deviations.exits import Exit, NoExit
from meanfield._large_deviations.path import Path
from meanfield._large_deviations.population_messages import population_path
from meanfield._large_deviations.prefactor import Prefactor
from meanfield._population.drift import TIME_PER_ROUND
from meanfield._population.population import as_population
from meanfield._population.single_policy import space_of


class Barrier(NamedTuple):
    """The way out of an attractor; the path is that of messages: collocation takes ten times as long."""

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
        """Its relative error from those of the barrier and of the prefactor."""
        return np.nan if self.prefactor is None else self.prefactor.error + n_agents * self.path.error


def barrier_of(ground: Landscape, number: int, *, with_prefactor: bool) -> Barrier | NoExit:
    """The barrier of the attractor with this number, or why it has none."""
    ways = ground.ways_out(number)
    if isinstance(ways, NoExit):
        return ways
    if len(ways) > 1:
        return NoExit(f"there are {len(ways)} saddles next to it: expected one")
    (way,) = ways
    if way.obstacle:
        return NoExit(way.obstacle)
    found = population_path(way, as_population(ground.game), with_prefactor=with_prefactor)
    if isinstance(found, str):
        return NoExit(found)
    path, prefactor = found
    growth = float(ground.unstable(way.saddle_number)[0])
    return Barrier(way, growth, path, prefactor if way.straight else None)


def barrier_slope(policy: xr.Dataset, barrier: Barrier) -> Slope:
    """Δ and its derivative by the probability of the first word of two; memories count by their part of the action."""
    equations, (way, growth, path, _) = PathEquations(policy["q"].values, space_of(policy)), barrier
    u, v = (_everywhere(way, values) for values in (path.x * np.exp(-path.p), np.exp(path.p)))
    v[:, ~way.face] = 1
    messages = kernel.messages_of(u, v, equations.q, equations.memory, equations.n_kept)
    pace = np.full(len(u), path.time[1])
    slope, passed = action_slope(equations, u, v, messages, pace, growth=growth, decay=way.decay)
    return Slope(path.barrier, slope, weights_of(passed))


def _everywhere(way: Exit, values: np.ndarray) -> np.ndarray:
    whole = np.zeros((len(values), len(way.face)))
    whole[:, way.face] = values
    return whole
