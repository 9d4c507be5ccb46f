"""The barrier of an attractor, and how it changes with the policies of its agents."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from meanfield._large_deviations.escape import Landscape
from meanfield._large_deviations.exit_path import agents_of, exit_path
from meanfield._large_deviations.exits import Exit, Extinction, NoExit, everywhere
from meanfield._large_deviations.path import Path
from meanfield._population.mixture import Mixture
from meanfield._population.population import as_population
from meanfield.core._path_search import action_slope

Kinds = Float[np.ndarray, "kinds states"]


class Barrier(NamedTuple):
    """The escape from an attractor. The path comes from auxiliary fields: collocation takes ten times as long."""

    way: Exit
    growth: float  # the saddle's unstable eigenvalue
    path: Path


def barrier_of(ground: Landscape, number: int) -> Barrier | NoExit:
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
    return Barrier(way, agents.ending.growth, solved.path)


def barrier_slope(mixture: Mixture, barrier: Barrier) -> tuple[Kinds, Kinds]:
    """The derivative of Δ by the probability of the first word of two, and x weighted by its part of the action."""
    way, growth, path = barrier
    (kinds, n_states), nodes = mixture.q.shape[:2], len(path.x)
    x, p = (everywhere(way, one, 0.0)[:, : kinds * n_states].reshape(nodes, kinds, -1) for one in (path.x, path.p))
    by_q, passed = action_slope(tuple(mixture), x, p, path.weight, way.decay, growth)
    return by_q[..., 0] - by_q[..., 1], passed / passed.sum()
