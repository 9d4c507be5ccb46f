"""The likeliest path out of an attractor: an instanton from it to a saddle.

The instanton to a saddle from a point on the rate equation's way down from it is easy to find next to the saddle, where
fields are those on the way down. It is followed as this point moves down the way, with as much more time as the way
down takes. From the attractor itself the path takes an infinite time; there the strength of the momentum at the end is
given, which fixes the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from meanfield._finite_size.fluctuations import met_others
from meanfield._finite_size.law_path import unstable_direction
from meanfield._finite_size.least_action_path import linearised
from meanfield._large_deviations.exits import Exit
from meanfield._large_deviations.linearised import Ends, SaddleEnd
from meanfield._large_deviations.path import Path
from meanfield._large_deviations.prefactor import Prefactor
from meanfield._large_deviations.random_fields import prefactor_of
from meanfield._numerics.course import halves, remaining
from meanfield._population.mixture import Mixture
from meanfield._population.trajectories import filled_game
from meanfield.core._path_search import (
    Ending,
    Instanton,
    Logarithms,
    PathProblem,
    action_rates,
    even_mesh,
    resting,
)

COARSE = 1.6  # first step, in units of the fastest rate
FIRST, MIN_STEPS = 4, 16  # the first path has this part of all steps
FEWEST = 5  # steps between which fields are interpolated
ROUGH, FINE = 1e-3, 1e-5  # residual of logarithms of fields: on the way, and in the end
SEARCH, LAST_SEARCH = 400, 2000  # evaluations
EASY = 150  # evaluations, below which the next stretch of the way is twice as long
SETTLED = 1e-5  # of the barrier: what halving the step may change, and what a longer path
ORDER = 15  # what the change is more than the error, for a method of order four
FADED, LONGER = 10.0, 4  # what a longer path gains beyond that where it starts, and how often it is made longer
FINEST = 8  # parts of a first step
MAX_NUMBERS = 2**24  # steps times states: 0.13 GB for each of a few courses
FINE_STEP, MOST_NODES = 0.3, 900  # for the prefactor
MOST_UNKNOWNS = 9 * MOST_NODES  # fields at all nodes, whose covariances then take half a gigabyte
NEGLIGIBLE = 1e-7  # correlations
LEAST = 1e-300


class Agents(NamedTuple):
    """A game, and how its compositions stand to those of a reaction model and to the states of a face."""

    arrays: tuple[Any, ...]
    end: SaddleEnd  # in the shape of a composition
    inwards: Callable[[np.ndarray], np.ndarray]  # from states of the model, on the last axis, to the game
    outwards: Callable[[np.ndarray], np.ndarray]  # from the game, after an axis of nodes, to states of the face

    @property
    def ending(self) -> Ending:
        """The momentum is -s l: noise goes against the way down."""
        return Ending(-self.end.left, -float((self.end.left * self.end.saddle).sum()), self.end.growth, self.end.spread)

    def problem(self, start: np.ndarray, end: float, n_steps: int, strength: float = np.nan) -> PathProblem:
        """From a start in the states of the model; a given strength is that of a path from the attractor."""
        return PathProblem(self.arrays, self.ending, even_mesh(end, n_steps), self.inwards(start), strength)


def agents_of_population(way: Exit, mixture: Mixture) -> Agents:
    """Those who are not committed."""
    kinds, n_states = mixture.q.shape[:2]
    committed = way.model.n_states - kinds * n_states

    def inwards(x: np.ndarray) -> np.ndarray:
        return x[..., : kinds * n_states].reshape(*x.shape[:-1], kinds, n_states)

    def outwards(course: np.ndarray) -> np.ndarray:
        return np.pad(course.reshape(len(course), -1), ((0, 0), (0, committed)))[:, way.face]

    saddle, first = inwards(way.saddle), inwards(way.downhill(0.0))
    growth, left = unstable_direction(mixture, saddle)
    left = left * np.sign((left * (first - saddle)).sum()) / np.abs(left).max()
    spread = float((left * linearised(tuple(mixture), saddle, left)[2]).sum())
    return Agents(tuple(mixture), SaddleEnd(saddle, float(growth[0]), left, spread), inwards, outwards)


def agents_of_reactions(way: Exit, ends: Ends) -> Agents:
    """Those in the states of the face."""
    size = int(way.face.sum())
    arrays = filled_game(_on_face(way))
    unused = arrays[0].shape[1] - size

    def filled(values: np.ndarray) -> np.ndarray:
        return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, unused)])

    end = ends.ending
    return Agents(
        arrays,
        SaddleEnd(filled(end.saddle), end.growth, filled(end.left), end.spread),
        lambda x: filled(x[..., way.face]),
        lambda course: course[:, :size],
    )


def _on_face(way: Exit) -> tuple[Any, ...]:
    """The game among the states of the face, with the channels that agents there take."""
    own, source, target, side, rate, classes, encounter_rate = way.model.game
    first, second = np.split(own[:, way.face], 2)
    met = first.any(1) & second.any(1)
    number = np.append(np.where(np.tile(met, 2), np.cumsum(np.tile(met, 2)) - 1, -1), 2 * met.sum())
    kept = way.face[source] & (number[side] >= 0)
    place = np.cumsum(way.face) - 1
    moves = place[source[kept]], place[target[kept]], number[side[kept]], rate[kept]
    return np.concatenate([first[met], second[met]]), *moves, classes[way.face], encounter_rate


class Solved(NamedTuple):
    """A path, and the problem and the instanton that it comes from."""

    path: Path
    problem: PathProblem
    found: Instanton


def exit_path(way: Exit, agents: Agents) -> Solved | str:
    """The path, or the reason if none is found."""
    n_steps = max(MIN_STEPS, int(np.ceil(way.duration * way.model.fastest / COARSE)))
    if n_steps * way.model.n_states > MAX_NUMBERS:
        return f"the path takes {n_steps} steps in {way.model.n_states} states, more than are kept"
    with np.errstate(all="ignore"):  # iterates far from the path may leave all bounds: None
        coarse = _followed(way, agents, n_steps)
        if coarse is None:
            return "no path to the saddle was found"
        problem, found = coarse
        for _ in range(LONGER):
            excess = abs(_energy(problem, found)[0]) / (2 * way.decay * found.action)
            if excess < SETTLED:
                break
            step, n_steps = _step(problem), problem.mesh.n_nodes - 1
            extra = int(np.ceil(np.log(FADED * excess / SETTLED) / (2 * way.decay * step)))
            longer = _longer(found, problem, way, agents, extra)
            n_steps += extra
            problem = agents.problem(way.attractor, n_steps * step, n_steps, found.strength)
            found = problem.solve(longer, FINE, LAST_SEARCH)
            if found is None:
                return "no path to the saddle was found"
        parts, change = 1, np.inf
        while change > SETTLED and parts < FINEST:
            parts, before = 2 * parts, found.action
            finer = _refined(problem, found)
            if finer is None:
                return "no path to the saddle was found"
            problem, found = finer
            change = abs(found.action / before - 1)
    return Solved(_path(way, agents, problem, found, change), problem, found)


def _path(way: Exit, agents: Agents, problem: PathProblem, found: Instanton, change: float) -> Path:
    u, v = problem.courses(found)
    x, p = u * v, np.log(v)
    work, energy = action_rates(problem.arrays, x, p)
    rest = remaining(halves(work[:, None])[:, 0], _step(problem))
    end, last = agents.end, x[-1]
    off = abs((end.strength(last) - found.strength) * end.spread / (2 * end.growth) * found.strength)
    error = change * found.action / ORDER + abs(energy[0]) / (2 * way.decay) + off
    centred = agents.outwards(_centred(way, agents, x, p))
    action = found.action - end.rest(last, found.strength) - rest
    return Path(problem.mesh.time[::2], agents.outwards(x), centred, action, energy, float(found.action), float(error))


def _centred(way: Exit, agents: Agents, x: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Momenta are known up to a number for each class: their mean over its agents is 0 for those of a population."""
    if len(agents.arrays) > 3:
        return p
    return p - (x * p).sum(-1, keepdims=True) / np.maximum(x.sum(-1, keepdims=True), LEAST)


def _energy(problem: PathProblem, found: Instanton) -> Float[np.ndarray, " nodes"]:
    """H, 0 on the exact path."""
    u, v = problem.courses(found)
    return action_rates(problem.arrays, u * v, np.log(v))[1]


def _step(problem: PathProblem) -> float:
    return float(problem.mesh.pace[0])


def _longer(found: Instanton, problem: PathProblem, way: Exit, agents: Agents, extra: int) -> Logarithms:
    """Fields that begin so many steps earlier."""
    fields, rest = found.logarithms, resting(agents.arrays, agents.inwards(way.attractor[None]))
    fading = np.exp(-way.decay * _step(problem) * np.arange(extra, 0, -1))
    return np.vstack([rest + fading[:, None] * (fields[0] - rest), fields])


def _refined(problem: PathProblem, found: Instanton) -> tuple[PathProblem, Instanton] | None:
    """The same path from an attractor with half the step."""
    mesh = even_mesh(problem.mesh.time[-1], 2 * (problem.mesh.n_nodes - 1))
    finer = PathProblem(problem.arrays, problem.ending, mesh, problem.start, found.strength)
    better = finer.solve(halves(found.logarithms), FINE, LAST_SEARCH)
    return None if better is None else (finer, better)


def _followed(way: Exit, agents: Agents, n_steps: int) -> tuple[PathProblem, Instanton] | None:
    """The path on a coarse mesh."""
    step, now = way.duration / n_steps, max(MIN_STEPS // 2, n_steps // FIRST)
    stretch, last, strength = max(1, n_steps // 10), None, np.nan
    while True:
        ends = now == n_steps
        start = way.attractor if ends else way.downhill(now * step)
        problem = agents.problem(start, now * step, now, strength if ends else np.nan)
        guess = resting(agents.arrays, agents.inwards(way.downhill(now * step - problem.mesh.time[::2]).T))
        if last is not None:
            new = len(guess) - len(last)
            guess[:new] += last[0] - guess[new]
            guess[new:] = last
        found = problem.solve(guess, FINE if ends else ROUGH, LAST_SEARCH if ends else SEARCH)
        if found is not None and ends:
            return problem, found
        if found is not None:
            last, strength = found.logarithms, found.strength
            stretch = 2 * stretch if problem.evaluations < EASY else stretch
            now = min(n_steps, now + stretch)
        elif last is None:
            now //= 2
        else:
            stretch = (now - len(last) + 1) // 2
            now = len(last) - 1 + stretch
        if now < FEWEST or stretch == 0:
            return None


def population_path(way: Exit, mixture: Mixture, *, with_prefactor: bool) -> tuple[Path, Prefactor | None] | str:
    """The path and its prefactor, or the reason if none is found."""
    agents = agents_of_population(way, mixture)
    if (np.einsum("mi,mia->a", agents.end.saddle, mixture.q) + mixture.committed <= 0).any():
        return "some word is never said here: expected a policy without it"
    solved = exit_path(way, agents)
    if isinstance(solved, str):
        return solved
    return solved.path, _prefactor(solved, way, mixture) if with_prefactor else None


def _prefactor(solved: Solved, way: Exit, mixture: Mixture) -> Prefactor | None:
    """With half the step as long as a sign is wrong; None if that takes too many nodes."""
    problem, found = solved.problem, solved.found
    while True:
        n_nodes, n_fields = found.logarithms.shape
        if n_nodes > MOST_NODES or n_nodes * n_fields > MOST_UNKNOWNS:
            return None
        if _step(problem) <= FINE_STEP:
            covariance = problem.correlations(found, NEGLIGIBLE)
            others = met_others(mixture, found.again, *problem.courses(found))
            prefactor = prefactor_of(covariance, others, _step(problem), way.decay, problem.ending.growth)
            if prefactor is not None:
                return prefactor
        finer = _refined(problem, found)
        if finer is None:
            return None
        problem, found = finer
