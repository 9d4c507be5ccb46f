"""Courses of a population that noise drives, more or less strongly, in one direction.

With π(t) a momentum and σ its strength, a population of tilted interactions obeys

    dx/dt = ∂h/∂p(x, σπ) / G(x, σπ),   h = (G - 1)/2,   G = Σ_ab g_ab g_ba,

with the messages g_ab of `least_action_path`; G is 1 without a tilt, and divides because a unit of time has exactly N/2
interactions. Steps of the rate equation alternate with pushes. The amplitude A(σ) = ∫ π·push dt of the noise in this
direction is that of a population of tilt σ: by the saddle-point approximation (Daniels, Ann. Math. Stat. 25, 631
(1954)) the density of the tilts in a population of N is √(N A'(σ)/2π) exp(-N ∫ σ dA).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from meanfield._finite_size import message_kernel as messages
from meanfield._finite_size import moments_kernel as kernel
from meanfield._finite_size.path_equations import PathEquations
from meanfield._numerics.course import Course, Vector
from meanfield._population.drift import TIME_PER_ROUND

STEPS = 5  # in a round
STEP = TIME_PER_ROUND / STEPS
MAX_ROUNDS = 300
TILT = 1e-2  # for second derivatives
SETTLED, STEADY = 1e-6, 1e-9  # failures and drift where a course ends


class Direction(NamedTuple):
    """A momentum at the steps, and the course on which it obeys the adjoint equation; zero after the last step."""

    momentum: Course
    along: Course

    def at(self, n: int) -> Vector | None:
        """The momentum at a step."""
        return self.momentum[n] if n < len(self.momentum) else None


class ForcedCourse(NamedTuple):
    """A course at the steps, the chance that an interaction fails, and the amplitude of the noise."""

    x: Course
    failing: Float[np.ndarray, " nodes"]
    amplitude: float

    def failures(self) -> Float[np.ndarray, " rounds"]:
        """The mean chance of failure in each round."""
        pieces = (self.failing[1:] + self.failing[:-1]) / 2
        return pieces.reshape(-1, STEPS).mean(1)


def push(equations: PathEquations, x: Vector, momentum: Vector) -> Vector:
    """What a tilt adds to the drift."""
    flow, total = _tilted(equations, x, momentum)
    return flow / total - equations.drift(x)


def push_slopes(equations: PathEquations, x: Vector, momentum: Vector) -> tuple[Vector, Vector]:
    """The first derivative of the push by the tilt, at none, and half the second."""
    drift = equations.drift(x)
    up, down = (flow / total for flow, total in (_tilted(equations, x, sign * TILT * momentum) for sign in (1, -1)))
    return linear_push(equations, x, momentum), (up + down - 2 * drift) / (2 * TILT**2)


def linear_push(equations: PathEquations, x: Vector, momentum: Vector) -> Vector:
    """The push of a weak tilt, (D - 2FFᵀ)π."""
    drift = equations.drift(x)
    return equations.noise(x, momentum) - 2 * drift * (drift @ momentum)


def _tilted(equations: PathEquations, x: Vector, momentum: Vector) -> tuple[Vector, float]:
    """∂h/∂p and G."""
    q, memory, n_kept = equations.q, equations.memory, equations.n_kept
    v = np.exp(momentum - momentum @ x)  # the same for a momentum that is larger in all states
    u = x / v
    g = messages.messages_of(u[None], v[None], q, memory, n_kept)[0]
    flow = v * messages.forwards(u, g, q, memory, n_kept) - u * messages.backwards(v, g, q, memory)
    return flow, float((g * g.T).sum())


def failing(equations: PathEquations, x: Vector) -> float:
    """The chance that two agents of a large population say different words."""
    said = x @ equations.q
    return 1 - float(said @ said) / float(said.sum()) ** 2


def stepped(equations: PathEquations, x: Vector) -> Vector:
    """The rate equation a step further."""
    return kernel.step_of(x, equations.q, equations.memory, equations.n_kept, STEP)[0]


def half_push(equations: PathEquations, x: Vector, momentum: Vector | None, strength: float) -> tuple[Vector, float]:
    """x after half a step of pushing, and what it adds to the amplitude."""
    if momentum is None or strength == 0:
        return x, 0.0
    move = STEP / 2 * push(equations, x, strength * momentum)
    return x + move, float(momentum @ move)


def forced_course(equations: PathEquations, direction: Direction | None, strength: float) -> ForcedCourse:
    """The course from empty memories until it settles, in whole rounds."""
    x = np.eye(1, len(equations.q))[0]
    course, fails, amplitude = [x], [failing(equations, x)], 0.0
    for n in range(MAX_ROUNDS * STEPS):
        if n % STEPS == 0 and n > 0 and ended(equations, x, fails[-1], direction, n, STEADY):
            break
        before, after = (direction.at(n), direction.at(n + 1)) if direction else (None, None)
        before = before if after is not None else None
        x, one = half_push(equations, x, before, strength)
        x, two = half_push(equations, stepped(equations, x), after, strength)
        amplitude += one + two
        course.append(x)
        fails.append(failing(equations, x))
    return ForcedCourse(np.array(course), np.array(fails), amplitude)


def ended(equations: PathEquations, x: Vector, fails: float, direction: Direction | None, n: int, still: float) -> bool:
    """Whether a course has settled at an attractor."""
    pushed = direction is not None and n < len(direction.momentum)
    return fails < SETTLED or (not pushed and bool(np.abs(equations.drift(x)).max() < still))
