"""The path from empty memories to a saddle that the noise of a finite population takes most easily.

It obeys dx/dt = F(x) + κ D(x)w/σ, with w the adjoint of the rate equation along the path itself,

    dw/dt = -J(x)ᵀw,  ending in the left eigenvector of the saddle's unstable direction.

w·δx is the effect of a disturbance δx on the side of the saddle on which the path ends, so

    distance = ∫ w·(dx/dt - F) dt  and  σ² = ∫ wᵀD(x)w dt

are what the noise must add up to and N times the variance to which it does add up; κ = distance/σ. Half of κ² is the
action of Freidlin and Wentzell (Random Perturbations of Dynamical Systems, ch. 4) but for the gradient of D, which is
left out of dw/dt: a correction of relative order κ.

Runge-Kutta of order four with a fixed step, on a grid that path, adjoint and noise share. Steps of first order would
not do: Euler's method makes κ of published policies 2 % too large at a step of 0.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.sparse.linalg import LinearOperator, eigs

from meanfield._memory import MemorySpace
from meanfield._noise import noise
from meanfield._rate_equation import drift

STEP = 0.2  # halving it changes κ by 2e-5 of its value
BATCH = 64  # compositions of a course that are treated at once
DENSE_STATES = 100  # below, LAPACK is faster than Arnoldi
NEAR = 1e-2  # |x - saddle| within which a path reaches the saddle
TOLERANCE = 1e-7  # relative change of κ at which the iteration ends
MAX_ITERATIONS = 40
MAX_BISECTIONS = 50
MAX_DOUBLINGS = 12


class Course(NamedTuple):
    """Vectors along the grid of time: at its nodes and in the middles between them.

    Attributes
    ----------
    node, middle
        Values. Middles are cubic Hermite interpolants, of order four like the rest.
    """

    node: Float[Array, "nodes states"]
    middle: Float[Array, "steps states"]


class LeastNoisePath(NamedTuple):
    """A path and its adjoint.

    Attributes
    ----------
    x, w
        Path and adjoint, at intervals of `STEP`. The scale of w is that of the left eigenvector in which it ends.
    end
        Number of the node at which the path is closest to the saddle; what follows is not part of the path.
    distance, sigma
        See the module; they scale with w, and κ = distance/sigma does not.
    iterations
        How many were needed.
    """

    x: Course
    w: Course
    end: int
    distance: float
    sigma: float
    iterations: int


def unstable_direction(
    saddle: Float[Array, " states"], q: Float[Array, "states words"], space: MemorySpace
) -> tuple[Float[np.ndarray, " two"], Float[np.ndarray, " states"]]:
    """The two leading eigenvalues (real parts, per unit of time) and the left eigenvector of the first.

    A second eigenvalue that is not positive may be 0, that of the constant vector, which every J has on the left.
    """

    @jax.jit
    def shifted(w: Array) -> Array:
        # J + I has the unstable eigenvalue as its largest, also in modulus, which Arnoldi iteration likes
        return _transposed(saddle, w, q, space) + w

    n = len(saddle)
    if n <= DENSE_STATES:
        values, vectors = np.linalg.eig(np.asarray(jax.vmap(shifted, out_axes=1)(jnp.eye(n))))
    else:
        operator = LinearOperator((n, n), matvec=lambda w: np.asarray(shifted(jnp.asarray(w.ravel()))), dtype=float)
        start = np.random.default_rng(0).standard_normal(n)
        found: Any = eigs(operator, k=3, which="LR", ncv=40, v0=start)
        values, vectors = found
    order = np.argsort(-values.real)
    return values.real[order[:2]] - 1, vectors[:, order[0]].real


def least_noise_path(
    q: Float[Array, "states words"],
    space: MemorySpace,
    saddle: Float[Array, " states"],
    left: Float[Array, " states"],
    n_steps: int,
) -> LeastNoisePath | None:
    """Path, adjoint and strength of the noise, iterated until they agree; None where they do not.

    An iteration is a Newton step for the strength: where the path is closest to the saddle, the adjoint says by how
    much it misses. Where that step does not lead near the saddle, because the path was still far off, bisection finds
    the strength that does, between one that does not carry the path over and one that does.

    Parameters
    ----------
    q, space
        The policy, shape (S, W).
    saddle
        Composition, shape (S,).
    left
        Left eigenvector of its unstable direction, shape (S,), positive towards the side that noise must reach.
    n_steps
        Number of steps of `STEP`.
    """

    # Numbers that vary go in as arrays: Python numbers would be compiled in.
    def drive(strength: float) -> Course:
        return _driven(push, jnp.asarray(strength), q, space)

    push, strength = Course(jnp.zeros((n_steps + 1, len(saddle))), jnp.zeros((n_steps, len(saddle)))), 0.0
    x = drive(strength)
    end, miss = _closest(x, saddle, space)
    for iteration in range(1, MAX_ITERATIONS + 1):
        w = _adjoint(left, jnp.asarray(end), x, q, space)
        spread = _noise_along(w, x, jnp.asarray(end), q, space)
        sigma = np.sqrt(_integral(w, spread, end))
        distance = strength * _integral(w, push, end) + float(w.node[end] @ (saddle - x.node[end]))
        previous, strength = strength, distance / sigma
        if miss < NEAR and abs(strength - previous) < TOLERANCE * abs(strength):
            return LeastNoisePath(x, w, end, distance, sigma, iteration)
        push = Course(spread.node / sigma, spread.middle / sigma)
        x = drive(strength)
        end, miss = _closest(x, saddle, space)
        if not miss <= NEAR:  # so that NaN counts as too far
            crossing = _bisect(drive, abs(strength), saddle, q, space)
            if crossing is None:
                return None
            strength, x = crossing
            end, miss = _closest(x, saddle, space)
    return None


def _bisect(
    drive: Callable[[float], Course],
    guess: float,
    saddle: Float[Array, " states"],
    q: Float[Array, "states words"],
    space: MemorySpace,
) -> tuple[float, Course] | None:
    """A strength that brings the path near the saddle, between those that don't and do carry it over; and the path."""

    def side(x: Course) -> float:
        return float(jnp.sign(((x.node[-1] - saddle) @ q)[0]))

    start = side(drive(0.0))

    def falls_short(x: Course) -> bool:  # a path that leaves all bounds (NaN) does not
        return side(x) == start

    below, above = 0.0, guess
    for _ in range(MAX_DOUBLINGS):
        if not falls_short(drive(above)):
            break
        below, above = above, 2 * above
    else:
        return None
    for _ in range(MAX_BISECTIONS):
        middle = (below + above) / 2
        x = drive(middle)
        if _closest(x, saddle, space)[1] < NEAR / 10:
            return middle, x
        below, above = (middle, above) if falls_short(x) else (below, middle)
    return None


def _closest(x: Course, saddle: Float[Array, " states"], space: MemorySpace) -> tuple[int, float]:
    """Node at which the path is closest to the saddle, and how close; not before most memories have filled."""
    first = round(2 * space.memory_length / STEP)
    distance = np.asarray(jnp.linalg.norm(x.node[first:] - saddle, axis=1))
    nearest = int(np.argmin(distance))  # NaN, where there is one
    return first + nearest, float(distance[nearest])


def _integral(a: Course, b: Course, end: int) -> float:
    """∫ a·b dt up to the node `end`, by Simpson's rule."""
    node = np.asarray((a.node * b.node).sum(1))
    middle = np.asarray((a.middle * b.middle).sum(1))
    return float(STEP / 6 * (node[:end].sum() + 4 * middle[:end].sum() + node[1 : end + 1].sum()))


def _transposed(x: Array, w: Array, q: Array, space: MemorySpace) -> Array:
    """J(x)ᵀw."""
    (product,) = jax.vjp(lambda y: drift(y, q, space), x)[1](w)
    return product


def _middles(node: Array, slope: Array) -> Array:
    """Cubic Hermite interpolants halfway between nodes."""
    return (node[1:] + node[:-1]) / 2 + STEP / 8 * (slope[:-1] - slope[1:])


@eqx.filter_jit
def _driven(push: Course, strength: Array, q: Array, space: MemorySpace) -> Course:
    """The solution of dx/dt = F(x) + strength · push from empty memories."""

    def step(x: Array, pushes: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        before, between, after = (strength * push for push in pushes)
        first = drift(x, q, space) + before
        second = drift(x + STEP / 2 * first, q, space) + between
        third = drift(x + STEP / 2 * second, q, space) + between
        fourth = drift(x + STEP * third, q, space) + after
        x = x + STEP / 6 * (first + 2 * second + 2 * third + fourth)
        return x, x

    start = jnp.zeros(len(q)).at[0].set(1.0)
    _, rest = jax.lax.scan(step, start, (push.node[:-1], push.middle, push.node[1:]))
    node = jnp.concatenate([start[None], rest])
    slope = jax.lax.map(lambda x: drift(x, q, space), node, batch_size=BATCH) + strength * push.node
    return Course(node, _middles(node, slope))


@eqx.filter_jit
def _adjoint(left: Array, end: Array, x: Course, q: Array, space: MemorySpace) -> Course:
    """w backwards in time from w = left at the node `end`; constant after it."""
    n_steps = len(x.middle)

    def step(w: Array, now: tuple[Array, Array, Array, Array]) -> tuple[Array, Array]:
        number, before, between, after = now
        first = _transposed(after, w, q, space)
        second = _transposed(between, w + STEP / 2 * first, q, space)
        third = _transposed(between, w + STEP / 2 * second, q, space)
        fourth = _transposed(before, w + STEP * third, q, space)
        w = jnp.where(number < end, w + STEP / 6 * (first + 2 * second + 2 * third + fourth), w)
        return w, w

    grid: Any = (jnp.arange(n_steps), x.node[:-1], x.middle, x.node[1:])
    _, earlier = jax.lax.scan(step, left, grid, reverse=True)
    node = jnp.concatenate([earlier, left[None]])
    slope = -jax.lax.map(lambda both: _transposed(*both, q, space), (x.node, node), batch_size=BATCH)
    return Course(node, _middles(node, slope))


@eqx.filter_jit
def _noise_along(w: Course, x: Course, end: Array, q: Array, space: MemorySpace) -> Course:
    """D(x)w up to the node `end`, 0 after it."""

    def spread(w: Array, x: Array, last: Array) -> Array:
        products = jax.lax.map(lambda both: noise(*both, q, space), (w, x), batch_size=BATCH)
        return jnp.where(jnp.arange(len(w))[:, None] <= last, products, 0.0)

    return Course(spread(w.node, x.node, end), spread(w.middle, x.middle, end - 1))
