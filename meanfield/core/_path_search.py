"""The search for instantons: Newton's method with GMRES for the fields that are their own images.

Fields may change fast at the start, where agents hardly ever say a weak word: steps are equal in τ(t), and programs are
compiled for some numbers of nodes only, with steps of length 0 after the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.sparse.linalg import LinearOperator, gmres
from scipy.special import wrightomega

from meanfield._numerics.blas import one_blas_thread
from meanfield._numerics.course import Vector, halves
from meanfield.core._export import exported

sweep = exported("meanfield.core._instanton", "sweep")
new_fields = exported("meanfield.core._instanton", "sweep", first=3)  # without the courses
correlations = exported("meanfield.core._instanton", "correlations")
final_correlations = exported("meanfield.core._instanton", "final_correlations")
path_slopes = exported("meanfield.core._instanton", "path_slopes")
path_rates = exported("meanfield.core._instanton", "path_rates")
resting_fields = exported("meanfield.core._instanton", "resting_fields")

LONG, GROWTH, FIRST = 0.8, 0.5, 1e-8  # steps: the longest, how fast they grow, and of which time they are at first
ROUGH = 1e-3  # size of residuals below which the next may be larger
MAX_KRYLOV = 150  # evaluations
# Of GMRES: the second where paths that wait near an attractor, for any time, hardly differ, so that convergence is slow
KRYLOV_TOLERANCES, SLOW = (1e-2, 1e-6), 0.3
DIFFERENCE = 1e-6  # of logarithms of fields, for their derivatives
FARTHEST = 3.0  # that logarithms may move in a step
SMALLEST_PART = 0.03  # of a step
FEWEST = 128  # steps in the arrays of the smallest program
BLOCK = 16  # nodes whose correlations are followed together

Logarithms = Float[np.ndarray, "nodes fields"]
Courses = Float[np.ndarray, "nodes ..."]
Arrays = tuple[Any, ...]  # of a game: three of a `WordGame`, seven of a `ReactionGame`


class Mesh(NamedTuple):
    """Times and dt/dτ at nodes and middles, where τ counts the steps."""

    time: Vector
    pace: Vector

    @property
    def n_nodes(self) -> int:
        return (len(self.time) + 1) // 2


def mesh_until(end: float, parts: int, first_time: float = FIRST, longest: float = LONG) -> Mesh:
    """A mesh from 0 to `end`, with each step in as many parts: τ = t/longest + log(1 + t/first_time)/GROWTH."""
    tau = end / longest + np.log1p(end / first_time) / GROWTH
    n_steps = parts * int(np.ceil(tau))
    first = GROWTH / longest * first_time
    # z + log z = known, for z = (t + first_time)·GROWTH/longest
    z = wrightomega(GROWTH * tau * np.arange(2 * n_steps + 1) / (2 * n_steps) + first + np.log(first))
    time = longest / GROWTH * (z - first)
    return Mesh(np.maximum(time, 0.0), tau / n_steps / (1 / longest + 1 / (GROWTH * (time + first_time))))


def even_mesh(end: float, n_steps: int) -> Mesh:
    """Equal steps."""
    return Mesh(np.linspace(0.0, end, 2 * n_steps + 1), np.full(2 * n_steps + 1, end / n_steps))


class Ending(NamedTuple):
    """The momentum at the end is s l: at a saddle with l its left eigenvector, or on a level set of l·x.

    Attributes
    ----------
    left
        l, in the shape of a composition; it points to where noise goes.
    level
        l·x at the saddle or on the level set.
    growth
        The saddle's eigenvalue λ.
    spread
        lᵀDl at the saddle; 0 for a level set.
    """

    left: np.ndarray
    level: float
    growth: float = 1.0
    spread: float = 0.0

    @property
    def width(self) -> float:
        """lᵀDl/2λ."""
        return self.spread / (2 * self.growth)

    def rest(self, strength: float) -> float:
        """A(s), the action after the end, less that of a path on which l·x is at its level."""
        return strength**2 * self.width / 2


class Instanton(NamedTuple):
    """Logarithms of fields and their images, the strength at the end, and the action; u and v are computed when asked.

    The path is stationary where `size`, that of the residual, is small.
    """

    logarithms: Logarithms
    again: Logarithms
    strength: float
    action: float

    @property
    def residual(self) -> Logarithms:
        return self.again - self.logarithms

    @property
    def size(self) -> float:
        return float(np.sqrt(np.mean(self.residual**2)))

    @property
    def kappa(self) -> float:
        """√(2 · action), with the sign of the strength."""
        return float(np.sign(self.strength) * np.sqrt(max(0.0, 2 * self.action)))


class PathProblem:
    """The path of a game from a composition at time 0 to an end.

    Parameters
    ----------
    arrays
        Those of the game: three of a `WordGame`, seven of a `ReactionGame`.
    ending, mesh
        Where the path ends, and its times.
    start
        Composition x₀ at time 0, of agents who are independent of each other.
    strength
        s where it is given, as for a path that comes from an attractor, whose time is free. Default: from the end.
    """

    def __init__(self, arrays: Arrays, ending: Ending, mesh: Mesh, start: np.ndarray, strength: float = np.nan) -> None:
        self.arrays, self.ending, self.mesh, self.start, self.strength = arrays, ending, mesh, start, strength
        self.evaluations = 0

    def evaluate(self, logarithms: Logarithms) -> Instanton | None:
        """None where fields leave all bounds."""
        again, strength, action = self._swept(logarithms, new_fields)
        again = again[: self.mesh.n_nodes]
        known = np.isfinite(again).all() and np.isfinite(action) and np.isfinite(strength)
        return Instanton(logarithms, again, float(strength), float(action)) if known else None

    def courses(self, found: Instanton) -> tuple[Courses, Courses]:
        """u and v at the nodes, v up to a factor that makes p·x at time 0 the action."""
        *_, u, v = self._swept(found.logarithms, sweep)
        n_nodes = self.mesh.n_nodes
        shift = np.exp(self.ending.rest(found.strength) - found.strength * self.ending.level)
        return u[:n_nodes] / shift, v[:n_nodes] * shift

    def correlations(self, found: Instanton, negligible: float) -> Float[np.ndarray, "nodes nodes fields fields"]:
        """Covariance of the fields of one agent at node n with those at node m ≤ n; see `core._instanton`."""
        n_nodes, n_fields = found.logarithms.shape
        path = self._padded(found.logarithms)
        *_, u, v = self._swept(found.logarithms, sweep)
        result = np.empty((n_nodes, n_nodes, n_fields, n_fields))
        for first in range(0, n_nodes, BLOCK):
            part = correlations(self.arrays, *path, u, v, np.int64(first), np.float64(negligible), block=BLOCK)
            result[:, first : first + BLOCK] = part[:n_nodes, : n_nodes - first]
        return result

    def final_correlations(self, found: Instanton) -> tuple[Float[np.ndarray, "nodes fields"], float]:
        """Covariance of the fields of one agent with l of the state where it ends, and the variance of l."""
        *_, u, v = self._swept(found.logarithms, sweep)
        path = self._padded(found.logarithms)
        covariance, variance = final_correlations(self.arrays, *path, u, v, self.ending.left)
        return covariance[: self.mesh.n_nodes], float(variance)

    def _padded(self, logarithms: Logarithms) -> tuple[np.ndarray, np.ndarray, np.int64]:
        """Fields at nodes and middles, the pace of steps, and their number, in arrays of a size that is kept."""
        pace, n_steps = self.mesh.pace, self.mesh.n_nodes - 1
        unused = _size(n_steps + 1) - n_steps - 1
        points = np.pad(halves(logarithms), ((0, 2 * unused), (0, 0)), mode="edge")
        pace = np.stack([pace[:-2:2], pace[1::2], pace[2::2]], axis=1)
        return points, np.pad(pace, ((0, unused), (0, 0))), np.int64(n_steps)

    def _swept(self, logarithms: Logarithms, program: Callable) -> tuple[np.ndarray, ...]:
        self.evaluations += 1
        numbers = map(np.float64, (self.ending.level, self.ending.width, self.strength))
        return program(self.arrays, *self._padded(logarithms), self.start, self.ending.left, *numbers)

    def nearest(self, starts: list[Logarithms]) -> Logarithms:
        """The one of the smallest residual."""
        found = [self.evaluate(start) for start in starts] if len(starts) > 1 else [None]
        return starts[int(np.argmin([np.inf if one is None else one.size for one in found]))]

    def solve(self, start: Logarithms, tolerance: float, most: int) -> Instanton | None:
        """The instanton by Newton's method, or None if it does not converge within about so many evaluations."""
        return newton(self.evaluate, start, tolerance, most)


def resting(arrays: Arrays, x: Courses) -> Logarithms:
    """Logarithms of the fields of compositions x without momentum."""
    return resting_fields(arrays, _filled(x), np.int64(len(x) - 1))[: len(x)]


def action_gradient(arrays: Arrays, x: Courses, p: Courses, weights: Vector) -> Arrays:
    """Derivatives of the action by the arrays of the game, whose integral over time has `weights` at the nodes."""
    return path_slopes(arrays, _filled(x), _filled(p), _filled(weights), np.int64(len(x) - 1))


def action_rates(arrays: Arrays, x: Courses, p: Courses) -> tuple[Vector, Vector]:
    """p·dx/dt - H and H at the nodes of a path."""
    work, energy = path_rates(arrays, _filled(x), _filled(p), np.int64(len(x) - 1))
    return work[: len(x)], energy[: len(x)]


def _filled(course: np.ndarray) -> np.ndarray:
    """Rows of zeros after the last, up to a number for which programs are kept."""
    return np.pad(course, [(0, _size(len(course)) - len(course))] + [(0, 0)] * (course.ndim - 1))


def _size(n_nodes: int) -> int:
    """The next of few numbers of nodes."""
    size = FEWEST
    while size + 1 < n_nodes:
        size *= 4
    return size + 1


def moved(logarithms: Logarithms, before: Mesh, after: Mesh, wait: float) -> Float[np.ndarray, "others fields"]:
    """Fields at the times of a longer mesh: the values at `wait` times the old end, and at the end, last longer."""
    at, extra = wait * before.time[-1], (after.time[-1] - before.time[-1]) * (0.5 if wait < 1 else 1.0)
    time = after.time[::2]
    source = np.where(time < at, time, np.maximum(at, time - extra))
    return np.transpose([np.interp(source, before.time[::2], column) for column in logarithms.T])


@one_blas_thread()
def newton(
    evaluate: Callable[[Logarithms], Instanton | None], start: Logarithms, tolerance: float, most: int
) -> Instanton | None:
    """The fields that are their own images, or None if the search does not converge in about `most` evaluations."""
    used = 0

    def counted(logarithms: Logarithms) -> Instanton | None:
        nonlocal used
        used += 1
        return evaluate(logarithms)

    krylov, exact = KRYLOV_TOLERANCES
    found = counted(start)
    while found is not None and found.size >= tolerance:
        if used >= most:
            return None
        step = _step(counted, found, krylov)
        nearer = next(_nearer(counted, found, step), None)
        if nearer is None and krylov == exact:
            return None
        if nearer is None or nearer.size > SLOW * found.size:
            krylov = exact
        found = found if nearer is None else nearer
    return found


def _step(evaluate: Callable, found: Instanton, tolerance: float) -> Logarithms:
    shape, size = found.logarithms.shape, found.logarithms.size

    def product(direction: np.ndarray) -> np.ndarray:
        scale = DIFFERENCE / max(np.abs(direction).max(), 1e-300)
        there = evaluate(found.logarithms + scale * direction.reshape(shape))
        return direction * np.nan if there is None else (found.residual - there.residual).ravel() / scale

    matrix: Any = LinearOperator((size, size), matvec=product, dtype=float)
    return gmres(matrix, found.residual.ravel(), rtol=tolerance, restart=MAX_KRYLOV, maxiter=1)[0].reshape(shape)


def _nearer(evaluate: Callable, found: Instanton, step: Logarithms) -> Iterator[Instanton]:
    part = min(1.0, FARTHEST / np.abs(step).max())
    while part > SMALLEST_PART:
        there = evaluate(found.logarithms + part * step)
        if there is not None and there.size < max(ROUGH, (1 - part / 10) * found.size):
            yield there
        part /= 2
