"""The likeliest path out of an attractor from fields: an instanton to a saddle, or to where some agents die out.

An instanton to the saddle from a point on the rate equation's way down is easy to find next to the saddle. It is
followed as this point moves down the way. From the attractor itself the path takes an infinite time; the strength of
the momentum at its end, which is given, fixes the time. From there an extinction is reached, too, in steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from meanfield._finite_size.law_path import unstable_direction
from meanfield._finite_size.least_action_path import linearised
from meanfield._large_deviations.exits import Path, Way, all_weights
from meanfield._large_deviations.extinction import AbsorbingEnd, absorbing_end
from meanfield._large_deviations.linearised import Ends
from meanfield._large_deviations.prefactor import Fluctuations, Prefactor, extinction_prefactor, saddle_prefactor
from meanfield._numerics.blas import one_blas_thread
from meanfield._numerics.trajectory import halves, remaining
from meanfield._population.mixture import Mixture
from meanfield._population.trajectories import filled_game
from meanfield.core._path_search import (
    Arrays,
    Departure,
    Ending,
    Instanton,
    action_rates,
    even_mesh,
    fields_along,
    interaction_of,
    resting,
)

NO_PATH = "no path to its end was found"
COARSE = 1.6  # first step, in units of the fastest rate
FIRST, MIN_STEPS = 4, 16  # the first path has this part of all steps
FEWEST = 5  # steps between which fields are interpolated
ROUGH, FINE = 1e-3, 1e-7  # residual of logarithms of fields: on the way, and in the end
SEARCH, LAST_SEARCH = 400, 2000  # evaluations
EASY = 150  # evaluations, below which the next stretch of the way is twice as long
SETTLED = 1e-5  # of the barrier: what halving the step may change, and what a longer path
WRONG = 1e-2  # of the barrier: an error with which a path does not lead to the saddle
ORDER = 15  # what the change is more than the error, for a method of order four
FADED, LONGER = 10.0, 4  # what a longer path gains beyond that where it starts, and how often it is made longer
FINEST = 8  # parts of a first step
MAX_NUMBERS = 2**24  # steps times states: 0.13 GB for each of a few trajectories
FINE_STEP, MOST_NODES = 0.6, 3000  # for the prefactor: a step in units of the fastest rate
MOST_UNKNOWNS = 8100  # fields at all nodes, whose covariances then take half a gigabyte
NEGLIGIBLE = 1e-7  # correlations
KNOWN = 0.01  # error of a prefactor from its steps, above which steps are halved
# Of an extinction: times before the momentum is raised and while it is, in units of both rates; the strength left then
STARTED, RISES, RAISED = 14.0, 4.0, 0.2
RISING = 64  # steps
SMALLEST_STRETCH = 1e-3  # of the momentum
LOWER, LAST_STRENGTH = 10.0, 5e-3  # strengths: how much less each time, and where the path may end
STRAIGHT = 1e-2  # of momenta at the end, that part that grows in reverse
VANISHED = -600.0  # logarithm of a field
LEAST = 1e-300  # in place of 0 agents, to divide by


class Agents(NamedTuple):
    """A game, and maps from its compositions to a reaction model's and to the states of a face."""

    arrays: Arrays
    ending: Ending
    inwards: Callable[[np.ndarray], np.ndarray]  # from states of the model, on the last axis, to the game
    outwards: Callable[[np.ndarray], np.ndarray]  # from the game, after an axis of nodes, to states of the face
    end: AbsorbingEnd | None = None  # of an extinction

    def problem(self, start: np.ndarray, end: float, n_steps: int, strength: float = np.nan) -> Departure:
        """The problem from a start in the states of the model; a strength is given for a path from the attractor."""
        return Departure(self.arrays, self.ending, even_mesh(end, n_steps), self.inwards(start), strength)


def agents_of(way: Way, mixture: Mixture | None, ends: Ends | None) -> Agents | str:
    """Agents of a population, or of a reaction model without a `mixture`, or why no path is computed.

    `ends` are given for a path over a saddle in a model of not too many states.
    """
    if mixture is None:
        size, arrays = int(way.face.sum()), filled_game(_on_face(way))
        classes, unused = arrays[5], arrays[0].shape[1] - size

        def filled(values: np.ndarray) -> np.ndarray:
            return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, unused)])

        def inwards(x: np.ndarray) -> np.ndarray:
            return filled(x[..., way.face])

        def outwards(x: np.ndarray) -> np.ndarray:
            return x[:, :size]

        if not way.dies_out:
            if ends is None:
                return f"agents of a reaction model have {size} states here, more than are computed"
            ending = ends.ending._replace(left=filled(ends.ending.left), base=0.0)
            return Agents(arrays, ending, inwards, outwards)
    else:
        arrays, (kinds, n_states) = tuple(mixture), mixture.q.shape[:2]
        classes, size = np.repeat(np.arange(kinds), n_states), kinds * n_states

        def inwards(x: np.ndarray) -> np.ndarray:
            return x[..., :size].reshape(*x.shape[:-1], kinds, n_states)

        def outwards(x: np.ndarray) -> np.ndarray:
            return np.pad(x.reshape(len(x), -1), ((0, 0), (0, way.model.n_states - size)))[:, way.face]

        saddle = inwards(way.saddle)
        if not way.dies_out:
            if (np.einsum("mi,mia->a", saddle, mixture.q) + mixture.committed <= 0).any():
                return "some word is never said here: expected a policy without it"
            growth, left = unstable_direction(mixture, saddle)
            left = -left * np.sign((left * (inwards(way.downhill(0.0)) - saddle)).sum()) / np.abs(left).max()
            spread = float((left * linearised(arrays, saddle, left)[2]).sum())
            ending = Ending(left, float((left * saddle).sum()), float(growth[0]), spread / (2 * float(growth[0])))
            return Agents(arrays, ending, inwards, outwards)
    end = absorbing_end(arrays, inwards(way.saddle), inwards(way.face), classes)
    return end if isinstance(end, str) else Agents(arrays, end.ending, inwards, outwards, end)


def _on_face(way: Way) -> tuple[Any, ...]:
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
    problem: Departure
    found: Instanton


def exit_path(way: Way, agents: Agents) -> Solved | str:
    """The path, or the reason if none is found."""
    duration, fewest, solve = way.duration, MIN_STEPS, _followed
    if agents.end is not None:  # from next to the attractor up to the strength `RAISED`
        duration, fewest, solve = STARTED / way.decay + RISES / agents.ending.growth, RISING, _raised
    n_steps = max(fewest, int(np.ceil(duration * way.model.fastest / COARSE)))
    if n_steps * way.model.n_states > MAX_NUMBERS:
        return f"the path takes {n_steps} steps in {way.model.n_states} states, more than are kept"
    with np.errstate(all="ignore"):  # iterates far from the path may leave all bounds: None
        coarse = solve(way, agents, duration, n_steps)
        if coarse is None:
            return NO_PATH
        problem, found = coarse
        for _ in range(LONGER):
            excess, allowed = abs(_along(problem, found)[3][0]), SETTLED * (2 * way.decay * found.action)
            if agents.end is not None:  # the end of the path is needed, too
                far = STRAIGHT * agents.ending.growth * agents.end.weight * found.strength**2
                allowed = min(allowed, far)
            if excess < allowed:
                break
            step, n_steps, fields = float(problem.mesh.pace[0]), problem.mesh.n_nodes - 1, found.logarithms
            extra = int(np.ceil(np.log(FADED * excess / allowed) / (2 * way.decay * step)))
            rest = resting(agents.arrays, agents.inwards(way.attractor[None]))
            fading = np.exp(-way.decay * step * np.arange(extra, 0, -1))[:, None]
            n_steps += extra
            problem = agents.problem(way.attractor, n_steps * step, n_steps, found.strength)
            found = problem.solve(np.vstack([rest + fading * (fields[0] - rest), fields]), FINE, LAST_SEARCH)
            if found is None:
                return NO_PATH
        parts, change = 1, np.inf
        while change > SETTLED and parts < FINEST:
            parts, before = 2 * parts, found.action
            finer = _refined(problem, found)
            if finer is None:
                return NO_PATH
            problem, found = finer
            change = abs(found.action / before - 1)
    path = _path(way, agents, problem, found, change)
    return Solved(path, problem, found) if path.error < WRONG * path.barrier else NO_PATH


def _path(way: Way, agents: Agents, problem: Departure, found: Instanton, change: float) -> Path:
    x, p, work, energy = _along(problem, found)
    rest = remaining(halves(work[:, None])[:, 0], float(problem.mesh.pace[0]))
    end, last = agents.ending, x[-1]
    off = abs((end.strength(last) - found.strength) * end.width * found.strength)
    error = change * found.action / ORDER + abs(energy[0]) / (2 * way.decay) + off
    if len(agents.arrays) == 3:  # momenta are known up to a number for each kind, whose agents get the mean 0
        p = p - (x * p).sum(-1, keepdims=True) / np.maximum(x.sum(-1, keepdims=True), LEAST)
    action, time = found.action - end.beyond(last, found.strength) - rest, problem.mesh.time[::2]
    weight = all_weights(time, way.decay, end.growth)
    x, p = agents.outwards(x), agents.outwards(p)
    return Path(time, x, p, action, energy, float(found.action), float(error), weight)


def _along(problem: Departure, found: Instanton) -> tuple[np.ndarray, ...]:
    """x, p, p·dx/dt - H, and H, which is 0 on the exact path."""
    u, v = problem.trajectories(found)
    x, p = u * v, np.log(v)
    return x, p, *action_rates(problem.arrays, x, p)


def _refined(problem: Departure, found: Instanton) -> tuple[Departure, Instanton] | None:
    """The same path from an attractor with half the step."""
    mesh = even_mesh(problem.mesh.time[-1], 2 * (problem.mesh.n_nodes - 1))
    finer = Departure(problem.arrays, problem.ending, mesh, problem.start, found.strength)
    better = finer.solve(halves(found.logarithms), FINE, LAST_SEARCH)
    return None if better is None else (finer, better)


def _followed(way: Way, agents: Agents, duration: float, n_steps: int) -> tuple[Departure, Instanton] | None:
    """The path on a coarse mesh."""
    step, now = duration / n_steps, max(MIN_STEPS // 2, n_steps // FIRST)
    stretch, last, strength = max(1, n_steps // 10), None, agents.ending.strength(agents.inwards(way.downhill(0.0)))
    while True:
        ends = now == n_steps
        start = way.attractor if ends else way.downhill(now * step)
        problem = agents.problem(start, now * step, now, strength if ends else np.nan)
        guess = resting(agents.arrays, agents.inwards(way.downhill(now * step - problem.mesh.time[::2]).T))
        if last is not None:
            new = len(guess) - len(last)
            guess[:new] += last[0] - guess[new]
            guess[new:] = last
        if ends:
            found = problem.solve(guess, FINE, LAST_SEARCH)
        else:
            found = problem.solve_with_strength(guess, strength, ROUGH, SEARCH)
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


def _raised(way: Way, agents: Agents, duration: float, n_steps: int) -> tuple[Departure, Instanton] | None:
    """The path to an extinction on a coarse mesh: its last momentum is raised, and then it goes on to the end."""
    assert agents.end is not None
    step = duration / n_steps
    x, p = agents.end.x, agents.ending.base
    assert isinstance(p, np.ndarray)
    mesh, start = even_mesh(n_steps * step, n_steps), agents.inwards(way.attractor)
    lifting = Ending(p, 0.0)
    fields = np.tile(resting(agents.arrays, start[None]), (n_steps + 1, 1))
    at, stretch, highest = 0.0, RAISED / 2, 1 - RAISED
    while at < highest:
        to = min(highest, at + stretch)
        found = Departure(agents.arrays, lifting, mesh, start, to).solve(fields, ROUGH, SEARCH)
        if found is None:
            stretch /= 2
            if stretch < SMALLEST_STRETCH:
                return None
        else:
            at, fields, stretch = to, found.logarithms, 2 * stretch
    strength, problem = RAISED, agents.problem(way.attractor, n_steps * step, n_steps, RAISED)
    found = problem.solve(fields, ROUGH, LAST_SEARCH)
    growth, last = agents.ending.growth, fields_along(agents.arrays, x[None], p[None])[0]
    while found is not None and strength > 1.5 * LAST_STRENGTH:
        extra = max(1, round(np.log(min(LOWER, strength / LAST_STRENGTH)) / (growth * step)))
        fading = np.exp(-growth * step * np.arange(1, extra + 1))[:, None]
        now = found.logarithms[-1]
        vanishing = (last < VANISHED) & (now > VANISHED)
        later = np.where(vanishing, now + np.log(fading), last + fading * (now - last))
        n_steps, strength = n_steps + extra, strength * float(fading[-1, 0])
        problem = agents.problem(way.attractor, n_steps * step, n_steps, strength)
        found = problem.solve(np.vstack([found.logarithms, later]), FINE, LAST_SEARCH)
    return None if found is None else (problem, found)


@one_blas_thread()
def path_prefactor(solved: Solved, way: Way, agents: Agents) -> Prefactor | None:
    """With half the step as long as it is not known well; None if that takes too many nodes."""
    problem, found = solved.problem, solved.found
    interaction, best = interaction_of(problem.arrays), None
    while True:
        n_nodes = problem.mesh.n_nodes
        if n_nodes > MOST_NODES or n_nodes * len(interaction.pairing) > MOST_UNKNOWNS:
            return best
        if problem.mesh.pace[0] * way.model.fastest <= FINE_STEP:
            covariance = problem.correlations(found, interaction, NEGLIGIBLE)
            fluctuations = Fluctuations(
                covariance, interaction.pairing, problem.met_others(found), float(problem.mesh.pace[0])
            )
            rates = way.decay, agents.ending.growth
            if agents.end is None:
                best = saddle_prefactor(fluctuations, *rates) or best
            else:
                strengths = agents.end.strengths(np.log(problem.trajectories(found)[1]))
                best = extinction_prefactor(fluctuations, *rates, agents.end.weight, strengths) or best
            if best is not None and best.step_error < KNOWN:
                return best
        finer = _refined(problem, found)
        if finer is None:
            return best
        problem, found = finer
