"""The likeliest path out of an attractor, found from messages.

With u = x exp(-p) and v = exp(p) Hamilton's equations are linear in u and in v, of bounded rates, once some sums over
all agents are given as functions of time, the messages: v goes backward from s·l next to the saddle, u forward from
x(0)/v. Both give new messages, whose fixed point Newton's method finds (`message_newton`).

The path to a saddle from a point on the rate equation's way down from it is easy to find next to the saddle, where
messages are those on the way down. It is followed as this point moves down the way, with as much more time as the way
down takes. The linearised end gives the strength s, one more unknown. From the attractor itself the path takes an
infinite time; there s is given, which fixes the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from meanfield._finite_size.message_newton import message_newton
from meanfield._large_deviations.exits import Exit
from meanfield._large_deviations.path import Path
from meanfield._numerics.course import halves

COARSE = 1.6  # first step, in units of the fastest rate
FIRST, MIN_STEPS = 4, 16  # the first path has this part of all steps
FEWEST = 5  # steps between which messages are interpolated
ROUGH, FINE = 1e-3, 1e-5  # residual of logarithms of messages: on the way, and in the end
SEARCH, LAST_SEARCH = 400, 2000  # evaluations
EASY = 150  # evaluations, below which the next stretch of the way is twice as long
SETTLED = 1e-5  # of the barrier: what halving the step may change, and what a longer path
ORDER = 15  # what the change is more than the error, for a method of order four
FADED, LONGER = 10.0, 4  # what a longer path gains beyond that where it starts, and how often it is made longer
FINEST = 8  # parts of a first step
MAX_NUMBERS = 2**24  # steps times states: 0.13 GB for each of a few courses

Logarithms = Float[np.ndarray, " unknowns"]  # of messages at nodes, and last of the strength
Messages = Float[np.ndarray, "nodes messages"]


class Found(NamedTuple):
    """Logarithms of messages, their images, and the courses of u and v, nodes first."""

    logarithms: Logarithms
    again: Logarithms
    u: Any
    v: Any

    @property
    def residual(self) -> Logarithms:
        return self.again - self.logarithms

    @property
    def size(self) -> float:
        return float(np.sqrt(np.mean(self.residual**2)))


@runtime_checkable
class Problem(Protocol):
    """Agents, the start of a path, its momentum at the end, and a mesh of equal steps."""

    times: Any

    def evaluate(self, logarithms: Logarithms) -> Found | None:
        """None where messages leave all bounds."""
        ...

    def guess(self, x: Any) -> Messages:
        """Logarithms of messages at compositions x, in all states of the model, without momentum."""
        ...

    def action(self, found: Found) -> Float[np.ndarray, " nodes"]:
        """∫ p·dx - h dt from the first node on."""
        ...

    def hamiltonian(self, found: Found) -> Float[np.ndarray, " nodes"]:
        """h."""
        ...

    def course(self, found: Found) -> tuple[Any, Any]:
        """x and p in the states of the face."""
        ...


Make = Callable[[Any, float, int, float | None], Problem]


class Ending(NamedTuple):
    """A saddle, its unstable eigenvalue λ, and lᵀDl of the left eigenvector l, in the shape of a composition.

    l is positive where the path comes from, so that it ends with p = -s·l.
    """

    saddle: Any
    growth: float
    left: Any
    spread: float

    def distance(self, x: Any) -> float:
        """l·(x - saddle)."""
        return float((self.left * (x - self.saddle)).sum())

    def strength(self, x: Any) -> float:
        """s with which the linearised path passes x."""
        return 2 * self.growth * self.distance(x) / self.spread

    def rest(self, x: Any, strength: float) -> float:
        """The action from x on, if the linearised path of this strength passes near."""
        return strength * self.distance(x) - strength**2 * self.spread / (4 * self.growth)


class Solved(NamedTuple):
    """A path, and the problem and the messages that it comes from."""

    path: Path
    problem: Any
    found: Found


def message_path(way: Exit, make: Make, ending: Ending, first: Any) -> Solved | str:
    """The path, or the reason if none is found.

    `make` is the problem with a given start in all states of the model, end time, number of steps and strength, None
    where it is unknown. The way down starts at `first`, in the shape of `ending.saddle`.
    """
    n_steps = max(MIN_STEPS, int(np.ceil(way.duration * way.model.fastest / COARSE)))
    if n_steps * way.model.n_states > MAX_NUMBERS:
        return f"the path takes {n_steps} steps in {way.model.n_states} states, more than are kept"
    with np.errstate(all="ignore"):  # iterates far from the path may leave all bounds: None
        coarse = _followed(way, make, n_steps, ending.strength(first))
        if coarse is None:
            return "no path to the saddle was found"
        problem, found = coarse
        strength = float(np.exp(found.logarithms[-1]))
        for _ in range(LONGER):
            excess = abs(problem.hamiltonian(found)[0]) / (2 * way.decay * problem.action(found)[-1])
            if excess < SETTLED:
                break
            step = problem.times[1]
            extra = int(np.ceil(np.log(FADED * excess / SETTLED) / (2 * way.decay * step)))
            longer = _longer(found, problem, way, extra)
            problem = make(way.attractor, problem.times[-1] + extra * step, len(problem.times) - 1 + extra, strength)
            found = message_newton(problem.evaluate, longer, FINE, LAST_SEARCH)
            if found is None:
                return "no path to the saddle was found"
        parts, change = 1, np.inf
        while change > SETTLED and parts < FINEST:
            parts, before = 2 * parts, problem.action(found)[-1]
            finer = refined(problem, found, make, way.attractor)
            if finer is None:
                return "no path to the saddle was found"
            problem, found = finer
            change = abs(problem.action(found)[-1] / before - 1)
    action, h, (x, p) = problem.action(found), problem.hamiltonian(found), problem.course(found)
    last = found.u[-1] * found.v[-1]
    off = abs((ending.strength(last) - strength) * ending.spread / (2 * ending.growth) * strength)
    error = change * action[-1] / ORDER + abs(h[0]) / (2 * way.decay) + off
    barrier = action[-1] + ending.rest(last, strength)
    return Solved(Path(problem.times, x, p, action, h, float(barrier), float(error)), problem, found)


def _longer(found: Found, problem: Problem, way: Exit, extra: int) -> np.ndarray:
    """Messages that begin so many steps earlier."""
    messages, rest = at_nodes(found.logarithms, len(problem.times)), problem.guess(way.attractor[None])
    fading = np.exp(-way.decay * problem.times[1] * np.arange(extra, 0, -1))
    return np.append(np.vstack([rest + fading[:, None] * (messages[0] - rest), messages]), found.logarithms[-1])


def at_nodes(logarithms: Logarithms, n_nodes: int) -> Messages:
    """Those of the messages."""
    return logarithms[:-1].reshape(n_nodes, -1)


def image_of(messages: np.ndarray, strength: float, before: Logarithms) -> np.ndarray:
    """Logarithms of messages and of the strength, which may be negative far from the path: to first order."""
    return np.append(np.log(messages), before[-1] + strength * np.exp(-before[-1]) - 1)


def refined(problem: Problem, found: Found, make: Make, start: Any) -> tuple[Problem, Found] | None:
    """The same path from an attractor with half the step."""
    n_nodes = len(problem.times)
    finer = make(start, problem.times[-1], 2 * n_nodes - 2, float(np.exp(found.logarithms[-1])))
    guess = np.append(halves(at_nodes(found.logarithms, n_nodes)), found.logarithms[-1])
    better = message_newton(finer.evaluate, guess, FINE, LAST_SEARCH)
    return None if better is None else (finer, better)


def _followed(way: Exit, make: Make, n_steps: int, strength: float) -> tuple[Problem, Found] | None:
    """The path on a coarse mesh."""
    step, now = way.duration / n_steps, max(MIN_STEPS // 2, n_steps // FIRST)
    stretch, last, logarithm = max(1, n_steps // 10), None, np.log(strength)
    while True:
        ends = now == n_steps
        start = way.attractor if ends else way.downhill(now * step)
        problem = make(start, now * step, now, float(np.exp(logarithm)) if ends else None)
        guess = problem.guess(way.downhill(now * step - problem.times).T)
        if last is not None:
            new = len(guess) - len(last)
            guess[:new] += last[0] - guess[new]
            guess[new:] = last
        used = 0

        def counted(logarithms: Logarithms, problem: Problem = problem) -> Found | None:
            nonlocal used
            used += 1
            return problem.evaluate(logarithms)

        search = LAST_SEARCH if ends else SEARCH
        found = message_newton(counted, np.append(guess, logarithm), FINE if ends else ROUGH, search)
        if found is not None and ends:
            return problem, found
        if found is not None:
            last, logarithm = at_nodes(found.logarithms, now + 1), found.logarithms[-1]
            stretch = 2 * stretch if used < EASY else stretch
            now = min(n_steps, now + stretch)
        elif last is None:
            now //= 2
        else:
            stretch = (now - len(last) + 1) // 2
            now = len(last) - 1 + stretch
        if now < FEWEST or stretch == 0:
            return None
