"""Failures among N agents along a forced course: their mean to order 1/N, and their spread.

Let the noise have the amplitude A in the direction π (`forced_course`). Given A, the composition of N agents has the
mean x + V/N and the covariance C/N with

    dV/dt = JV + ½F''[C] + b - JF - (∂D/∂x·y)π - ½T[π, π],   C = diag(x) - xxᵀ + h - yyᵀ/v.

h is the correlation of two agents (`moments`), y the covariance of x and A, v the variance of A, and T the third
cumulant of an interaction. The last two terms make the mean of the noise vanish over all A. While the course keeps to
that of π, y is Cπ with the C of all A; later dy/dt = Jy + Dπ, with the noise of tilted agents. What V has of y belongs
to A and is left out.

The failures of a round have the covariance c with the composition, fed by that of a failing interaction with its own
move, and a variance; both are conditioned in the same way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import block_diag

from meanfield._finite_size import moments_kernel as kernel
from meanfield._finite_size.forced_course import (
    MAX_ROUNDS,
    STEP,
    STEPS,
    Direction,
    ended,
    failing,
    half_push,
    linear_push,
    push_slopes,
    stepped,
)
from meanfield._finite_size.moments import compressed, fed
from meanfield._finite_size.path_equations import PathEquations
from meanfield._numerics.course import Vector

WINDOW = 3  # rounds
FROM = 0.35  # chance of failure below which rounds are followed
APART = 0.15  # ‖x - x'‖₁ up to which a course keeps to that of the direction
STILL = 1e-5  # drift where a course ends
NEGLECTED = 1e-4  # eigenvalues of h, relative
ROOM = 2  # how many times the rank of h its factors may hold before they are compressed

Rounds = Float[np.ndarray, " rounds"]


class CourseNoise(NamedTuple):
    """Failures by round, as fractions of its interactions: their mean is failures + correction/N."""

    failures: Rounds
    correction: Rounds
    spread: Rounds  # N times the variance of the mean of three rounds up to this one; NaN where it is not followed
    amplitude: float


class _Followed:
    """Sums over the rounds that are followed."""

    def __init__(self) -> None:
        self.with_state: dict[int, Vector] = {}  # covariance of a round's failures and the composition
        self.with_amplitude: dict[int, float] = {}
        self.covariance: dict[tuple[int, int], float] = {}

    def start(self, number: int, n_states: int) -> None:
        self.with_state[number], self.with_amplitude[number] = np.zeros(n_states), 0.0
        for old in [one for one in self.with_state if one <= number - WINDOW]:
            del self.with_state[old], self.with_amplitude[old]

    def spread(self, number: int) -> float:
        """N times the variance of the mean of the rounds up to this one."""
        rounds = range(number - WINDOW + 1, number + 1)
        pairs = [self.covariance.get((min(one, two), max(one, two)), np.nan) for one in rounds for two in rounds]
        return float(np.sum(pairs)) / WINDOW**2


class _State:
    """The composition x, its mean V, the factors of h, and y, at a step."""

    def __init__(self, equations: PathEquations, direction: Direction | None, strength: float) -> None:
        self.equations, self.direction, self.strength = equations, direction, strength
        self.x = np.eye(1, len(equations.q))[0]
        self.V = np.zeros_like(self.x)
        self.y = np.zeros_like(self.x)
        self.free, self.variance, self.amplitude = direction is None, 1.0, 0.0
        self.rows, weights = fed(self.x, equations)
        self.n_fed, self.rank = len(self.rows), 0
        self.middle = np.zeros_like(weights)
        self.first = STEP / 2 * weights

    def momentum(self, n: int) -> Vector | None:
        """π during the step after n, and at its start."""
        direction = self.direction
        return direction.at(n) if direction and direction.at(n + 1) is not None else None

    def covariance(self, w: Float[np.ndarray, "states columns"]) -> Float[np.ndarray, "states columns"]:
        """diag(x)w - xxᵀw + hw."""
        whole = self.x[:, None] * w - np.outer(self.x, self.x @ w)
        return whole + self.rows.T @ (self.middle @ (self.rows @ w))

    def tilted_noise(self, x: Vector, momentum: Vector) -> Vector:
        """Dπ with the noise of the tilted single agents."""
        one = linear_push(self.equations, x, momentum)
        return one + self.strength * (one * momentum - one * (x @ momentum) - x * (momentum @ one))

    def condition(self, n: int) -> None:
        """Take y from the covariance while the course keeps to that of the direction."""
        direction = self.direction
        momentum = direction.at(n) if direction else None
        if self.free or momentum is None or direction is None:
            return
        self.y = self.covariance(momentum[:, None])[:, 0]
        self.variance = 1.0
        if np.abs(self.x - direction.along[n]).sum() > APART or direction.at(n + 1) is None:
            self.free, until_now = True, float(momentum @ self.y)
            self.variance = until_now + self._variance_from(n)
            if until_now > 0:
                self.V = self.V - (momentum @ self.V) / until_now * self.y

    def _variance_from(self, n: int) -> float:
        x, total = self.x, 0.0
        while (momentum := self.momentum(n)) is not None:
            after = self.momentum_after(n)
            total += STEP / 2 * float(momentum @ self.tilted_noise(x, momentum))
            x = half_push(self.equations, x, momentum, self.strength)[0]
            x = half_push(self.equations, stepped(self.equations, x), after, self.strength)[0]
            total += STEP / 2 * float(after @ self.tilted_noise(x, after))
            n += 1
        return total

    def momentum_after(self, n: int) -> Vector:
        """π at the end of the step after n, where there is one."""
        return self.direction.momentum[n + 1] if self.direction else np.zeros_like(self.x)

    def advance(self, n: int, followed: _Followed) -> None:
        """A step, with everything that moves along."""
        equations, before = self.equations, self.momentum(n)
        if n > 0:
            self.middle[-self.n_fed :, -self.n_fed :] *= 2  # the end of a step and the start of the next
        else:
            self.middle = self.first
        self._pushed(before)
        numbers = list(followed.with_state)
        rows = np.vstack([self.x, self.V, self.y, *followed.with_state.values(), self.rows])
        moved = np.empty_like(rows)
        q, memory = equations.q, equations.memory
        moved[0], kept, said = kernel.step_of(rows[0], q, memory, equations.n_kept, STEP)
        kernel.perturbations(rows[1:], kept, said, q, memory, STEP, np.empty((0, rows.shape[1])), moved[1:])
        self.x, self.V, self.y = moved[0], moved[1], moved[2]
        followed.with_state = dict(zip(numbers, moved[3 : 3 + len(numbers)], strict=True))
        self.rows = moved[3 + len(numbers) :]
        self._pushed(self.momentum_after(n) if before is not None else None)
        if len(self.rows) > ROOM * max(self.rank, 3 * self.n_fed):
            self.rows, self.middle = compressed(self.rows, self.middle, NEGLECTED)
            self.rank = len(self.rows)
        rows, weights = fed(self.x, equations)
        self.rows, self.middle = np.vstack([self.rows, rows]), block_diag(self.middle, STEP / 2 * weights)

    def _pushed(self, momentum: Vector | None) -> None:
        if momentum is None:
            return
        if self.free:
            self.y = self.y + STEP / 2 * self.tilted_noise(self.x, momentum)
        self.x, added = half_push(self.equations, self.x, momentum, self.strength)
        self.amplitude += added


class _Sources(NamedTuple):
    """What half a step on either side of a node adds."""

    mean: Vector  # dV/dt without JV
    correction: float  # of order 1/N, to the chance of failure, without that from the mean
    failing: float
    slope: Vector  # of the chance of failure
    with_state: Vector  # source of the covariance of failures and composition
    with_amplitude: float
    noise: float  # variance of a failure, per unit of time
    direct: float  # covariance of a failure and its own push of the amplitude
    along: Vector | None  # Dπ
    variance: float


def _sources(state: _State, n: int) -> _Sources:
    equations, x, y, v = state.equations, state.x, state.y, state.variance
    q, momentum = equations.q, state.direction.at(n) if state.direction else None
    said, Q, F = x[:, None] * q, x @ q, equations.drift(x)
    fails = failing(equations, x)
    conditioned = state.covariance(q) - np.outer(y, y @ q) / v
    apart = x[:, None] * Q - said
    weights = conditioned + apart
    jointly = np.stack([equations.kept(np.ascontiguousarray(weight)) for weight in weights.T], axis=-1).ravel()
    mean = equations.states(jointly) - equations.linearised(x, F)
    slope = -2 * (q @ Q)
    second = -float((q * conditioned).sum()) - float(Q @ Q - (said * q).sum())
    kept = equations.kept(x)
    other = kept[:, :, None] * Q * (1 - np.eye(len(Q)))
    own = equations.states(other) - (said * (1 - Q)).sum(1) - F * fails
    direct, along = 0.0, None
    if momentum is not None:
        direct, along = float(own @ momentum), linear_push(equations, x, momentum)
        mean = mean - _noise_change(equations, x, y, momentum) - push_slopes(equations, x, momentum)[1]
    with_state = conditioned @ -Q + own - y * direct / v
    with_amplitude = float(slope @ y) / 2 + direct
    noise = fails * (1 - fails) / 2
    return _Sources(mean, second, fails, slope, with_state, with_amplitude, noise, direct, along, v)


def _noise_change(equations: PathEquations, x: Vector, y: Vector, momentum: Vector) -> Vector:
    """(∂D/∂x·y)π."""
    size = 1e-3 / max(1.0, float(np.abs(y).sum()))
    up, down = (linear_push(equations, x + sign * size * y, momentum) for sign in (1, -1))
    return (up - down) / (2 * size)


def course_noise(equations: PathEquations, direction: Direction | None, strength: float) -> CourseNoise:
    """The failures along the course of a tilt, until it settles."""
    state, followed = _State(equations, direction, strength), _Followed()
    failures, correction = np.zeros(MAX_ROUNDS), np.zeros(MAX_ROUNDS)
    spread: list[float] = []
    for n in range(MAX_ROUNDS * STEPS + 1):
        state.condition(n)
        sources, before = _sources(state, n), (n - 1) // STEPS
        if n > 0:
            _feed(state, followed, sources, before)
            _count(state, followed, sources, before, failures, correction)
        if n % STEPS == 0:
            if n > 0:
                spread.append(followed.spread(before))
            settled = n > 0 and ended(equations, state.x, sources.failing, direction, n, STILL)
            if settled or n == MAX_ROUNDS * STEPS:
                break
            if sources.failing < FROM:
                followed.start(n // STEPS, len(state.x))
        _count(state, followed, sources, n // STEPS, failures, correction)
        _feed(state, followed, sources, n // STEPS)
        state.advance(n, followed)
    n_rounds = len(spread)
    return CourseNoise(failures[:n_rounds], correction[:n_rounds], np.array(spread), state.amplitude)


def _count(
    state: _State, followed: _Followed, sources: _Sources, number: int, failures: Rounds, correction: Rounds
) -> None:
    """Half a step of failures, in round `number`."""
    half = STEP / 2
    failures[number] += half * sources.failing / 2
    correction[number] += half * (float(sources.slope @ state.V) + sources.correction) / 2
    if number in followed.with_state:
        for other, amplitude in followed.with_amplitude.items():
            joint = sources.slope @ followed.with_state[other] / 2 - sources.direct * amplitude / sources.variance
            joint = 2 * joint + sources.noise if other == number else joint
            key = (other, number)
            followed.covariance[key] = followed.covariance.get(key, 0.0) + half * joint


def _feed(state: _State, followed: _Followed, sources: _Sources, number: int) -> None:
    """Half a step of the sources, in round `number`."""
    half = STEP / 2
    state.V = state.V + half * sources.mean
    if number in followed.with_state:
        followed.with_state[number] = followed.with_state[number] + half * sources.with_state
        followed.with_amplitude[number] += half * sources.with_amplitude
    if sources.along is not None:
        for other, amplitude in followed.with_amplitude.items():
            followed.with_state[other] = (
                followed.with_state[other] - half * sources.along * amplitude / sources.variance
            )
