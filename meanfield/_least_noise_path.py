"""The path from empty memories to a saddle that the noise of a finite population takes most easily.

With the momentum p, which weighs disturbances by their effect on the side of the saddle on which a population ends,

    dx/dt = F(x) + D(x)p,   dp/dt = -J(x)ᵀp,   x(0) = empty memories, x(∞) = the saddle,

and κ² = ∫ pᵀD(x)p dt. Half of it is the action of Freidlin and Wentzell (Random Perturbations of Dynamical Systems,
ch. 4) but for the gradient of D, which is left out of dp/dt: a correction of relative order κ. From κ of about 1/2 on
these equations may have no solution. Then the path is that of the action itself (`LeastAction`), which has a minimum.

A boundary-value problem, on [0, T] with p(T) ∝ the left eigenvector of the saddle's unstable direction and what is left
after T linearised at the saddle. F has degree one, J(x)x = F(x), so that a solution has d(p·x)/dt = -pᵀDp: from p along
any course near x, the share p·x(t) = -∫_t pᵀDp of the unstable direction follows, and -p·x(0) = ∫ pᵀDp sets the
strength. A sweep goes backwards for p, and forwards for x with p·x held at these values by a push along D(x)p,
which vanishes as sweeps converge. It is stable however fast the saddle repels. Anderson's mixing finds its fixed point.

Where noise is strong, sweeps for the least action need a good start. Any momentum makes a course that costs its action,
so that such a course over the saddle bounds κ from above but for errors of the grid, and as the action is stationary at
its minimum, momenta that follow from the course before soon give a close bound.

Runge-Kutta of order four on a grid that is halved until κ is known, middles of steps by interpolation of order six.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.sparse.linalg import LinearOperator, eigs

from meanfield._anderson import anderson
from meanfield._memory import MemorySpace
from meanfield._path_equations import LeadingOrder, LeastAction, PathEquations, Vector

DENSE_STATES = 100  # below, LAPACK is faster than Arnoldi
COARSE = 0.8  # first step
APPROACH = 32.0  # first T; published policies need no more
STEP_ERROR = 2e-5  # of κ, relative: what halving the step would change
END_ERROR = 3e-6  # of κ², relative: what the linearised end may be wrong by
COURSE_TOLERANCE = 1e-7  # change of a composition in a sweep
KAPPA_TOLERANCE = 1e-8  # relative change of κ in a sweep
MAX_SWEEPS = 40
MAX_TILTS = 8  # momenta tried
MAX_TILT_HALVINGS = 4  # of their step, for the answer
TILT_STEP = 0.4  # rates under strong momenta are fast
TILT_GAIN = 1e-3  # of κ, relative: by less, another momentum is not worth its time
SMALLEST_PART = 0.05  # of the way to another momentum
STRIDE, FARTHEST, HALVINGS = 0.5, 40.0, 30  # of the search for the strength of a momentum, by its logarithm

# Weights of six nodes: for the middle between the two in the middle, and for the first two middles
STENCIL = np.array([3.0, -25.0, 150.0, 150.0, -25.0, 3.0]) / 256
EDGE = np.array([[63.0, 315.0, -210.0, 126.0, -45.0, 7.0], [-7.0, 105.0, 210.0, -70.0, 21.0, -3.0]]) / 256

Course = Float[np.ndarray, "nodes states"]


class LeastNoisePath(NamedTuple):
    """A path and its momentum.

    Attributes
    ----------
    x, p
        At intervals of `step`, from time 0.
    kappa
        See the module.
    equations
        Those that path and momentum obey.
    growth
        Positive eigenvalue of the saddle, with which p decays after the last node.
    solved
        Whether it solves its equations; else it is some path over the saddle, and κ about an upper bound.
    """

    x: Course
    p: Course
    step: float
    kappa: float
    equations: LeadingOrder | LeastAction
    growth: float
    solved: bool = True

    @property
    def leading_order(self) -> bool:
        """Whether it is that of leading order."""
        return isinstance(self.equations, LeadingOrder)


def unstable_direction(equations: PathEquations, saddle: Vector) -> tuple[Float[np.ndarray, " two"], Vector]:
    """The two leading eigenvalues (real parts, per unit of time) and the left eigenvector of the first.

    A second eigenvalue that is not positive may be 0, that of the constant vector, which every J has on the left.
    """

    def shifted(w: Vector) -> Vector:
        # J + I has the unstable eigenvalue as its largest, also in modulus, which Arnoldi iteration likes
        return equations.transposed(saddle, w.ravel()) + w.ravel()

    n = len(saddle)
    if n <= DENSE_STATES:
        values, vectors = np.linalg.eig(np.stack([shifted(w) for w in np.eye(n)], axis=1))
    else:
        start = np.random.default_rng(0).standard_normal(n)
        operator = LinearOperator((n, n), matvec=shifted, dtype=float)
        found: Any = eigs(operator, k=3, which="LR", ncv=40, v0=start)
        values, vectors = found
    order = np.argsort(-values.real)
    return values.real[order[:2]] - 1, vectors[:, order[0]].real


def least_noise_path(
    q: Float[np.ndarray, "states words"], space: MemorySpace, saddle: Vector, left: Vector, growth: float, limit: int
) -> LeastNoisePath | str:
    """The path of leading order or, where none is found, that of least action; the reason where neither is.

    Sweeps start from a population that always hears what is said at the saddle, those for the least action from the
    best of some courses over the saddle, which also is the answer where they do not converge. A path that solves its
    equations is stationary; that no other has less noise is not checked.

    Parameters
    ----------
    q, space
        The policy, shape (S, W).
    saddle
        Composition, shape (S,).
    left
        Left eigenvector of its unstable direction, shape (S,), positive towards the side that noise must reach.
    growth
        Its eigenvalue, per unit of time.
    limit
        Number of nodes times states above which the search is given up.
    """
    with np.errstate(all="ignore"):  # iterates far from the path may leave all bounds: None
        leading = _Ends(LeadingOrder(q, space), saddle, left, growth)
        first = _Iterate(_hearing(leading, round(APPROACH / COARSE), COARSE), 1.0, saddle, 0.0)
        if (path := _refined(leading, first, limit)) is not None:
            return path
        action = _Ends(LeastAction(q, space), saddle, left, growth)
        bound = _tilted(action)
        if bound is None:
            return "no path to the saddle was found"
        path = _refined(action, bound._replace(x=bound.x[:: round(COARSE / TILT_STEP)]), limit)
        if isinstance(path, LeastNoisePath):
            return path
        step, bound = _settled(action, bound)
    return LeastNoisePath(bound.x, bound.p, step, bound.kappa, action.equations, growth, solved=False)


class _Iterate(NamedTuple):
    """x, the strength in p(T) = strength · left, and what the last sweep made of them."""

    x: Course
    strength: float
    p: Course
    kappa: float


class _Ends(NamedTuple):
    """What holds at the ends of a path."""

    equations: LeadingOrder | LeastAction
    saddle: Vector
    left: Vector
    growth: float

    def start(self) -> Vector:
        """Empty memories."""
        return np.eye(1, len(self.saddle))[0]


def _refined(ends: _Ends, first: _Iterate, limit: int) -> LeastNoisePath | str | None:
    """The path on [0, T] and on a grid as large and as fine as needed."""
    size = len(ends.saddle)
    n_steps = round(APPROACH / COARSE)
    if n_steps * size > limit:
        return _too_large(n_steps, size, ends)
    found = _solve(ends, first, COARSE)
    while found is not None and _end_error(ends, found, COARSE) > END_ERROR:
        n_steps += n_steps // 2
        if n_steps * size > limit:
            return _too_large(n_steps, size, ends)
        fading = np.exp(-ends.growth * COARSE * np.arange(1, n_steps + 2 - len(found.x)))
        tail = ends.saddle + fading[:, None] * (found.x[-1] - ends.saddle)
        strength = found.strength * fading[-1]
        longer = found._replace(x=np.concatenate([found.x, tail]), strength=strength)
        found = _solve(ends, longer, COARSE)
    step, error = COARSE, np.inf
    while found is not None and error > STEP_ERROR:
        step, n_steps = step / 2, 2 * n_steps
        if n_steps * size > limit:
            return _too_large(n_steps, size, ends)
        finer = np.empty((n_steps + 1, size))
        finer[::2], finer[1::2] = found.x, middles(found.x)
        previous, found = found.kappa, _solve(ends, found._replace(x=finer), step)
        error = np.inf if found is None else abs(found.kappa - previous) / (16 * found.kappa)
    if found is None or not found.kappa > 0:
        return None
    return LeastNoisePath(found.x, found.p, step, found.kappa, ends.equations, ends.growth)


def _too_large(n_steps: int, size: int, ends: _Ends) -> str:
    size_of_path = f"{n_steps} steps in {size} states"
    return f"the path to a saddle with eigenvalue {ends.growth:.2g} needs {size_of_path}, more than are kept"


def _tilted(ends: _Ends) -> _Iterate | None:
    """The best of several courses over the saddle, None where the first momentum finds none.

    A momentum tilts the chances of what happens. As in policy iteration, the next one is what a change of the course is
    worth while these tilts are kept, or part of the way there where all of it makes κ larger.
    """
    n_steps = round(APPROACH / TILT_STEP)
    best = _over_the_saddle(ends, _first_momentum(ends, n_steps))
    for _ in range(MAX_TILTS if best else 0):
        change, part, found = _next_momentum(ends, best) - best.p, 1.0, None
        while part > SMALLEST_PART and not (found and found.kappa < best.kappa):
            found, part = _over_the_saddle(ends, best.p + part * change), part / 2
        if found is None or not found.kappa < best.kappa:
            return best
        gain, best = 1 - found.kappa / best.kappa, found
        if gain < TILT_GAIN:
            return best
    return best


def _first_momentum(ends: _Ends, n_steps: int) -> Course:
    """Of leading order, along the course of agents who hear what is said at the saddle."""
    along = halves(_hearing(ends, n_steps, TILT_STEP))[::-1]

    @no_type_check
    def rate(number: int, p: Vector) -> Vector:
        return ends.equations.transposed(along[number], p)

    return integrate(rate, ends.left, n_steps, TILT_STEP)[::-1]


def _next_momentum(ends: _Ends, best: _Iterate) -> Course:
    equations, n_steps = ends.equations, len(best.x) - 1
    along, momentum = halves(best.x)[::-1], halves(best.p)[::-1]

    @no_type_check
    def rate(number: int, p: Vector) -> Vector:
        x, tilt = along[number], momentum[number]
        return equations.backward(x, tilt) + equations.backward_change(x, tilt, p - tilt)

    return integrate(rate, best.strength * ends.left, n_steps, TILT_STEP)[::-1]


def _settled(ends: _Ends, best: _Iterate) -> tuple[float, _Iterate]:
    """The course of the best momentum in steps short enough, and their length."""
    step = TILT_STEP
    for _ in range(MAX_TILT_HALVINGS):
        p = halves(best.p)
        finer = _over_the_saddle(ends, p, step / 2)
        if finer is None:
            break
        gain, best, step = abs(finer.kappa / best.kappa - 1), finer, step / 2
        if gain < TILT_GAIN and best.x.min() > -TILT_GAIN:
            break
    return step, best


def _over_the_saddle(ends: _Ends, p: Course, step: float = TILT_STEP) -> _Iterate | None:
    """The course under as much of a momentum as leads to the side that noise must reach, and what it costs."""
    n_steps, momentum, equations = len(p) - 1, halves(p), ends.equations

    def course(logarithm: float) -> Course:
        factor = np.exp(logarithm)
        return integrate(
            lambda number, x: equations.forward(x, factor * momentum[number])[0], ends.start(), n_steps, step
        )

    @cache
    def beyond(logarithm: float) -> float:
        return float(ends.left @ course(logarithm)[-1])

    bracket = _bracket(beyond)
    if bracket is None:
        return None
    # What leaves all bounds is beyond
    logarithm = brentq(lambda at: beyond(at) if np.isfinite(beyond(at)) else 1.0, *bracket, xtol=1e-13)
    x, p = course(logarithm), np.exp(logarithm) * p
    work = np.array([equations.work(*both) for both in zip(halves(x), halves(p), strict=True)])
    strength = float(p[-1] @ ends.left / (ends.left @ ends.left))
    action = remaining(work, step)[0] + max(0.0, work[-1]) / (2 * ends.growth)
    kappa = float(np.sqrt(equations.kappa_squared * action))
    return _Iterate(x, strength, p, kappa) if np.isfinite(kappa) and np.isfinite(x).all() else None


def _bracket(function: Callable[[float], float]) -> tuple[float, float] | None:
    """Two arguments next to each other between which it turns positive; larger ones may be out of bounds."""
    low = 0.0
    while not function(low) < 0:
        low -= STRIDE
        if low < -FARTHEST:
            return None
    high = low + STRIDE
    while function(high) < 0:
        low, high = high, high + STRIDE
        if high > FARTHEST:
            return None
    for _ in range(HALVINGS):
        if np.isfinite(function(high)):
            return low, high
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return None


def _solve(ends: _Ends, guess: _Iterate, step: float) -> _Iterate | None:
    """The fixed point of sweeps, None where it is not found from this guess."""
    shape = guess.x.shape
    sweeps: list[_Iterate] = [guess]

    def advance(state: np.ndarray) -> np.ndarray:
        iterate = guess._replace(x=state[:-1].reshape(shape), strength=float(np.exp(state[-1])))
        sweeps.append(_sweep(ends, iterate, step))
        return _state(sweeps[-1])

    def done(residual: np.ndarray) -> bool:
        change = abs(sweeps[-1].kappa - sweeps[-2].kappa)
        return bool(np.abs(residual).max() < COURSE_TOLERANCE and change < KAPPA_TOLERANCE * abs(sweeps[-1].kappa))

    found = anderson(advance, _state(guess), done, MAX_SWEEPS)
    return None if found is None else sweeps[-1]


def _state(iterate: _Iterate) -> np.ndarray:
    return np.append(iterate.x.ravel(), np.log(iterate.strength))


def _hearing(ends: _Ends, n_steps: int, step: float) -> Course:
    """The path of agents whose partners speak as those at the saddle: it ends there from everywhere."""
    Q, equations = ends.saddle @ ends.equations.q, ends.equations

    @no_type_check
    def rate(number: int, x: Vector) -> Vector:
        return equations.states(equations.kept(x)[:, :, None] * Q) - x

    return integrate(rate, ends.start(), n_steps, step)


def _sweep(ends: _Ends, iterate: _Iterate, step: float) -> _Iterate:
    """The momentum along x, and x under this momentum."""
    equations, n_steps = ends.equations, len(iterate.x) - 1
    along = halves(iterate.x)
    p = integrate(
        lambda number, p: equations.backward(along[2 * n_steps - number], p),
        iterate.strength * ends.left,
        n_steps,
        step,
    )[::-1]
    momentum = halves(p)
    work = np.array([equations.work(x, p) for x, p in zip(along, momentum, strict=True)])
    left = remaining(work, step) + work[-1] / (2 * ends.growth)
    start = ends.start()
    factor = -(p[0] @ start) / left[0]
    strength = iterate.strength if equations.linear else iterate.strength * factor
    p, momentum, left = factor * p, factor * momentum, factor**2 * left

    @no_type_check
    def held(number: int, x: Vector) -> Vector:
        push = equations.forward(x, p[number])[1]
        return x - (left[number] + p[number] @ x) / (p[number] @ push) * push

    x = integrate(lambda number, x: equations.forward(x, momentum[number])[0], start, n_steps, step, held)
    kappa = np.sign(factor) * np.sqrt(equations.kappa_squared * left[0])
    return _Iterate(x, strength, p, float(kappa))


def _end_error(ends: _Ends, found: _Iterate, step: float) -> float:
    """What of κ² the linearised end may be wrong by: the part after T, times how nonlinear it is."""
    leading = ends.equations.leading_order()
    x, p = found.x[-1], found.p[-1]
    part = leading.work(x, p) / (2 * ends.growth * found.kappa**2)
    off = leading.transposed(x, ends.left) - ends.growth * ends.left
    return part * float(np.ptp(off) / (ends.growth * np.ptp(ends.left)))


# --- courses on a grid ---


def integrate(
    rate: Callable[[int, Vector], Vector],
    start: Vector,
    n_steps: int,
    step: float,
    held: Callable[[int, Vector], Vector] | None = None,
) -> Course:
    """Runge-Kutta of order four; `rate` gets the number of half steps since the start, `held` adjusts each node."""
    course = np.empty((n_steps + 1, len(start)))
    course[0] = start
    for number in range(n_steps):
        y = course[number]
        first = rate(2 * number, y)
        second = rate(2 * number + 1, y + step / 2 * first)
        third = rate(2 * number + 1, y + step / 2 * second)
        fourth = rate(2 * number + 2, y + step * third)
        y = y + step / 6 * (first + 2 * (second + third) + fourth)
        course[number + 1] = y if held is None else held(number + 1, y)
    return course


def middles(course: Course) -> Float[np.ndarray, "steps states"]:
    """Halfway between nodes, of order six."""
    n_steps = len(course) - 1
    middle = np.empty((n_steps, course.shape[1]))
    middle[2:-2] = sum(weight * course[k : k + n_steps - 4] for k, weight in enumerate(STENCIL))
    for number in (0, 1):
        middle[number] = EDGE[number] @ course[:6]
        middle[-1 - number] = EDGE[number] @ course[:-7:-1]
    return middle


def halves(course: Course) -> Float[np.ndarray, "halves states"]:
    """Nodes and middles in turn."""
    both = np.empty((2 * len(course) - 1, course.shape[1]))
    both[::2], both[1::2] = course, middles(course)
    return both


def remaining(values: Float[np.ndarray, " halves"], step: float) -> Float[np.ndarray, " nodes"]:
    """∫ from each node to the last one, by Simpson's rule."""
    pieces = step / 6 * (values[:-2:2] + 4 * values[1::2] + values[2::2])
    return np.append(np.cumsum(pieces[::-1])[::-1], 0.0)
