"""The path from empty memories to a saddle that takes the least noise of a finite population.

With the momentum p, which weighs disturbances by their effect on the side of the saddle on which a population ends,

    dx/dt = F(x) + D(x)p,   dp/dt = -J(x)ᵀp,   x(0) = empty memories, x(∞) = the saddle,

and κ² = ∫ pᵀD(x)p dt. Half of it is the action of Freidlin and Wentzell (Random Perturbations of Dynamical Systems, ch.
4) except for the gradient of D, which is left out of dp/dt: a correction of relative order κ. From κ of about 1/2 on
these equations may have no solution. The path of least action then replaces it (`least_action_path`).

The boundary-value problem is solved on [0, T], with p(T) ∝ the left eigenvector of the saddle's unstable direction and
the dynamics after T linearised at the saddle. F has degree one, J(x)x = F(x), so a solution has d(p·x)/dt = pᵀDp. From
p along any course near x follows the share p·x(t) = -∫_t pᵀDp of the unstable direction, and -p·x(0) = ∫ pᵀDp sets the
strength. A sweep goes backwards for p, and forwards for x with p·x held at these values by a push along D(x)p, which
vanishes as sweeps converge. It is stable however fast the saddle repels. Anderson's mixing finds its fixed point.

Runge-Kutta of order four on a grid that is halved until κ has converged; middles of steps by interpolation of order
six.
"""

from __future__ import annotations

from typing import Any, NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float
from scipy.sparse.linalg import LinearOperator, eigs

from meanfield._finite_size.least_action_path import LeastActionPath, least_action_path, too_large
from meanfield._finite_size.path_equations import PathEquations
from meanfield._numerics.anderson import anderson
from meanfield._numerics.course import Course, Vector, halves, integrate, middles, remaining
from meanfield._population.memory import MemorySpace

DENSE_STATES = 100  # below, LAPACK is faster than Arnoldi
COARSE = 0.8  # first step
APPROACH = 32.0  # first T; published policies need no more
STEP_ERROR = 2e-5  # of κ, relative: what halving the step would change
END_ERROR = 3e-6  # of κ², relative: what the linearised end may be wrong by
COURSE_TOLERANCE = 1e-7  # change of a composition in a sweep
KAPPA_TOLERANCE = 1e-8  # relative change of κ in a sweep
MAX_SWEEPS = 40


class LeastNoisePath(NamedTuple):
    """A path of leading order and its momentum."""

    x: Course  # at intervals of `step`, from time 0
    p: Course
    step: float
    kappa: float  # √(∫ pᵀDp dt); negative where noise acts backwards
    equations: PathEquations  # the policy
    growth: float  # positive eigenvalue of the saddle, with which p decays after the last node


def unstable_direction(equations: PathEquations, saddle: Vector) -> tuple[Float[np.ndarray, " two"], Vector]:
    """The two leading eigenvalues (real parts, per unit of time) and the left eigenvector of the first.

    A second eigenvalue that is not positive may be 0, from the constant vector, a left eigenvector of every J.
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
    q: Float[np.ndarray, "states words"],
    space: MemorySpace,
    saddle: Vector,
    left: Vector,
    growth: float,
    limit: int,
    scale: float = 0.0,
) -> LeastNoisePath | LeastActionPath | str:
    """The path of leading order, else the path of least action, else the reason why neither is found.

    Sweeps start from a population that always hears the word share of the saddle. The path is stationary; whether
    another path has less noise is not checked. `left` is the left eigenvector of the saddle's unstable direction,
    positive towards the side that noise must reach, and `growth` its eigenvalue, per unit of time. The search is given
    up above `limit`, in nodes times states.

    With a `scale` above 0 the rate equation may lead to either side: κ < 0 if it leads to the side of `left`, and noise
    acts backwards. κ is smooth through 0; where it is smaller than `scale` its errors are relative to `scale`.
    """
    ends = _Ends(PathEquations(q, space), saddle, left, growth, scale)
    with np.errstate(all="ignore"):  # iterates far from the path may leave all bounds: None
        first = _Iterate(_hearing(ends, round(APPROACH / COARSE), COARSE), 1.0, saddle, 0.0)
        path = _refined(ends, first, limit)
        return least_action_path(ends.equations, saddle, left, growth, limit) if path is None else path


class _Iterate(NamedTuple):
    """x, the strength in p(T) = strength · left, and the results p and κ of the last sweep."""

    x: Course
    strength: float
    p: Course
    kappa: float


class _Ends(NamedTuple):
    """The conditions at the ends of a path."""

    equations: PathEquations
    saddle: Vector
    left: Vector
    growth: float
    scale: float  # κ below which its errors are absolute

    def start(self) -> Vector:
        """Empty memories."""
        return np.eye(1, len(self.saddle))[0]


def _refined(ends: _Ends, first: _Iterate, limit: int) -> LeastNoisePath | str | None:
    """The path on [0, T] and on a grid as large and as fine as needed; κ may be negative."""
    size = len(ends.saddle)
    n_steps = round(APPROACH / COARSE)
    if n_steps * size > limit:
        return too_large(n_steps + 1, size, ends.growth)
    found = _solve(ends, first, COARSE)
    while found is not None and _end_error(ends, found, COARSE) > END_ERROR:
        n_steps += n_steps // 2
        if n_steps * size > limit:
            return too_large(n_steps + 1, size, ends.growth)
        fading = np.exp(-ends.growth * COARSE * np.arange(1, n_steps + 2 - len(found.x)))
        tail = ends.saddle + fading[:, None] * (found.x[-1] - ends.saddle)
        strength = found.strength * fading[-1]
        longer = found._replace(x=np.concatenate([found.x, tail]), strength=strength)
        found = _solve(ends, longer, COARSE)
    step, error = COARSE, np.inf
    while found is not None and error > STEP_ERROR:
        step, n_steps = step / 2, 2 * n_steps
        if n_steps * size > limit:
            return too_large(n_steps + 1, size, ends.growth)
        finer = np.empty((n_steps + 1, size))
        finer[::2], finer[1::2] = found.x, middles(found.x)
        previous, found = found.kappa, _solve(ends, found._replace(x=finer), step)
        if found is not None:
            against = max(abs(found.kappa), ends.scale) if ends.scale else found.kappa
            error = abs(found.kappa - previous) / (16 * against)
    if found is None or not (found.kappa > 0 or ends.scale > 0):
        return None
    return LeastNoisePath(found.x, found.p, step, found.kappa, ends.equations, ends.growth)


def _solve(ends: _Ends, guess: _Iterate, step: float) -> _Iterate | None:
    """The fixed point of sweeps, or None if it is not found from this guess."""
    shape = guess.x.shape
    sweeps: list[_Iterate] = [guess]

    def advance(state: np.ndarray) -> np.ndarray:
        iterate = guess._replace(x=state[:-1].reshape(shape), strength=float(np.exp(state[-1])))
        sweeps.append(_sweep(ends, iterate, step))
        return _state(sweeps[-1])

    def done(residual: np.ndarray) -> bool:
        change = abs(sweeps[-1].kappa - sweeps[-2].kappa)
        small = KAPPA_TOLERANCE * max(abs(sweeps[-1].kappa), ends.scale)
        return bool(np.abs(residual).max() < COURSE_TOLERANCE and change < small)

    found = anderson(advance, _state(guess), done, MAX_SWEEPS)
    return None if found is None else sweeps[-1]


def _state(iterate: _Iterate) -> np.ndarray:
    return np.append(iterate.x.ravel(), np.log(iterate.strength))


def _hearing(ends: _Ends, n_steps: int, step: float) -> Course:
    """The path of agents whose partners speak as at the saddle: it ends there from everywhere."""
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
        lambda number, p: equations.transposed(along[2 * n_steps - number], p),
        iterate.strength * ends.left,
        n_steps,
        step,
    )[::-1]
    momentum = halves(p)
    work = np.array([equations.work(x, p) for x, p in zip(along, momentum, strict=True)])
    left = remaining(work, step) + work[-1] / (2 * ends.growth)
    start = ends.start()
    factor = -(p[0] @ start) / left[0]
    p, momentum, left = factor * p, factor * momentum, factor**2 * left

    @no_type_check
    def held(number: int, x: Vector) -> Vector:
        push = equations.noise(x, p[number])
        return x - (left[number] + p[number] @ x) / (p[number] @ push) * push

    @no_type_check
    def rate(number: int, x: Vector) -> Vector:
        return equations.drift(x) + equations.noise(x, momentum[number])

    x = integrate(rate, start, n_steps, step, held)
    return _Iterate(x, iterate.strength, p, float(np.sign(factor) * np.sqrt(left[0])))


def _end_error(ends: _Ends, found: _Iterate, step: float) -> float:
    """The relative error of κ² from the linearised end: the part after T, times its nonlinearity."""
    x, p = found.x[-1], found.p[-1]
    part = ends.equations.work(x, p) / (2 * ends.growth * found.kappa**2)
    off = ends.equations.transposed(x, ends.left) - ends.growth * ends.left
    return part * float(np.ptp(off) / (ends.growth * np.ptp(ends.left)))
