"""The search for instantons: Newton's method with GMRES for the fields that are their own images.

Fields may change fast at the start, where agents hardly ever say a weak word: steps are equal in τ(t), and programs are
compiled for some numbers of nodes only, with steps of length 0 after the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import block_diag, solve_triangular
from scipy.special import wrightomega

from meanfield._numerics.blas import one_blas_thread
from meanfield._numerics.trajectory import Vector, halves
from meanfield.core._export import exported

sweep = exported("meanfield.core._instanton", "sweep")
new_fields = exported("meanfield.core._instanton", "sweep", first=3)  # without the trajectories
departure = exported("meanfield.core._instanton", "departure")
departing_fields = exported("meanfield.core._instanton", "departure", first=3)
influences = exported("meanfield.core._instanton", "influences")
final_correlations = exported("meanfield.core._instanton", "final_correlations")
pairing = exported("meanfield.core._instanton", "pairing")
field_coefficients = exported("meanfield.core._instanton", "field_coefficients")
met_others = exported("meanfield.core._instanton", "met_others")
path_slopes = exported("meanfield.core._action", "path_slopes")
path_rates = exported("meanfield.core._instanton", "path_rates")
path_fields = exported("meanfield.core._instanton", "path_fields")

LONG, GROWTH, FIRST = 0.8, 0.5, 1e-8  # steps: the longest, how fast they grow, and the time of the first
ROUGH = 1e-3  # size of residuals below which the next may be larger
MAX_KRYLOV = 150  # evaluations
# Of GMRES: the second where paths that wait near an attractor, for any time, hardly differ, so that convergence is slow
KRYLOV_TOLERANCES, SLOW = (1e-2, 1e-6), 0.3
STAYS = 0.99  # change of residuals, from which they are as good as the same
MOST_KNOWN = 300  # products that are kept for another mesh
DIFFERENCE = 1e-6  # of logarithms of fields, for their derivatives
FARTHEST = 3.0  # that logarithms may move in a step
SMALLEST_PART = 0.03  # of a step
FEWEST = 128  # steps in the arrays of the smallest program
BENT = 9  # terms of a `Bend`; without one they are 0, for the same program
DEPENDENT = 1e-12  # singular values of fields of reaction models
BLOCK = 8  # steps between which changes are combined
FINER = 1e-6  # changes that are left out, of negligible correlations

Logarithms = Float[np.ndarray, "nodes fields"]
Trajectories = Float[np.ndarray, "nodes ..."]
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


class Bend(NamedTuple):
    """Terms of order s², s³, … of a factor of exp(momentum) at the end and of S, and the largest s where they hold."""

    factor: Float[np.ndarray, "orders ..."]
    action: Vector
    farthest: float


class Ending(NamedTuple):
    """The momentum at the end is base + s l: near a saddle, where agents die out, or on a level set of l·x.

    Attributes
    ----------
    left
        l, in the shape of a composition. At a saddle it is the left eigenvector, and points to where noise goes.
    level
        l·x at the fixed point or on the level set.
    growth
        The rate λ with which the momentum approaches its base.
    width
        The path passes l·x = level - s·width. It is lᵀDl/2λ at a saddle, and 0 for a level set.
    base
        The momentum at the fixed point: 0 at a saddle, and where agents die out in the states that become empty only.
    bend
        Terms of higher order in s, for paths that end farther from the saddle. Default: none.
    """

    left: np.ndarray
    level: float
    growth: float = 1.0
    width: float = 0.0
    base: np.ndarray | float = 0.0
    bend: Bend | None = None

    def rest(self, strength: float) -> float:
        """A(s), the action after the end, minus the action of a path on which l·x is at its level."""
        rest = strength**2 * self.width / 2
        if self.bend is not None:
            rest -= float(strength ** np.arange(2, len(self.bend.action) + 2) @ self.bend.action)
        return rest

    def strength(self, x: np.ndarray) -> float:
        """s with which the linearised path passes x."""
        return (self.level - float((self.left * x).sum())) / self.width

    def beyond(self, x: np.ndarray, strength: float) -> float:
        """The action from x on, if the linearised path of this strength passes near."""
        above = float((self.left * x).sum()) - self.level
        return -float((self.base * x).sum()) - strength * above - strength**2 * self.width / 2


class Instanton(NamedTuple):
    """Logarithms of fields and their images, the strength at the end, and the action; u and v are computed when asked.

    The path is stationary where `size`, the norm of the residual, is small.
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


class Interaction(NamedTuple):
    """The interaction of agents: `basis` are combinations of fields, and `pairing` the second derivatives in them.

    Fields of a reaction model that depend on each other, or have no partners, do not count.
    """

    basis: Float[np.ndarray, "fields parts"]
    pairing: Float[np.ndarray, "parts parts"]


def interaction_of(arrays: Arrays) -> Interaction:
    """The interaction of a game's agents; of words all fields count."""
    partners = pairing(arrays)
    if len(arrays) == 3:
        return Interaction(np.eye(len(partners)), partners)
    vectors, sizes, _ = np.linalg.svd(field_coefficients(arrays).reshape(len(partners), -1), full_matrices=False)
    vectors = vectors[:, sizes > DEPENDENT * sizes.max(initial=0)]
    strengths, directions = np.linalg.eigh(vectors.T @ partners @ vectors)
    acting = np.abs(strengths) > DEPENDENT * np.abs(strengths).max(initial=0)
    return Interaction(vectors @ directions[:, acting], np.diag(strengths[acting]))


class PathProblem:
    """The path of a game from a composition at time 0 to an end.

    Parameters
    ----------
    arrays
        Arrays of the game: three of a `WordGame`, seven of a `ReactionGame`.
    ending, mesh
        Where the path ends, and its times.
    start
        Composition x₀ at time 0, of agents who are independent of each other.
    strength
        s where it is given, as for a path that comes from an attractor, whose time is free. Default: from the end.
    """

    _programs = sweep, new_fields

    def __init__(self, arrays: Arrays, ending: Ending, mesh: Mesh, start: np.ndarray, strength: float = np.nan) -> None:
        self.arrays, self.ending, self.mesh, self.start, self.strength = arrays, ending, mesh, start, strength
        self.evaluations, self.inverse = 0, Inverse()

    def evaluate(self, logarithms: Logarithms) -> Instanton | None:
        """None where fields leave all bounds."""
        again, strength, action = self._swept(logarithms, self._programs[1], self.strength)
        again = again[: self.mesh.n_nodes]
        known = np.isfinite(again).all() and np.isfinite(action) and np.isfinite(strength)
        return Instanton(logarithms, again, float(strength), float(action)) if known else None

    def trajectories(self, found: Instanton) -> tuple[Trajectories, Trajectories]:
        """u and v at the nodes, v up to a factor that makes p·x at time 0 the action."""
        u, v = self._uv(found)
        n_nodes = self.mesh.n_nodes
        rest = self.ending.rest(found.strength) - found.strength * self.ending.level
        shift = np.exp(rest / self.start.sum())
        return u[:n_nodes] / shift, v[:n_nodes] * shift

    def correlations(
        self, found: Instanton, interaction: Interaction, negligible: float
    ) -> Float[np.ndarray, "nodes nodes parts parts"]:
        """Covariance of the fields of one agent, f at node n and f' at node m ≤ n, the mean over all times their mass.

        At n = m f' comes first. It is left out (0) where what f' makes of the distribution of agents has faded to
        `negligible`. Fields at many nodes change it in a few ways only, since agents forget: these are followed.
        """
        n_nodes, n_parts = len(found.logarithms), interaction.basis.shape[1]
        points, pace, _ = self._padded(found.logarithms)
        u, v = self._uv(found)
        mass, fresh = (u[0] * v[0]).sum(), n_parts * BLOCK
        u, v = (np.pad(trajectory[:n_nodes], [(0, BLOCK)] + [(0, 0)] * (u.ndim - 1), "edge") for trajectory in (u, v))
        points, pace = np.pad(points, ((0, 2 * BLOCK), (0, 0)), "edge"), np.pad(pace, ((0, BLOCK), (0, 0)))
        result = np.zeros((n_nodes, n_nodes, n_parts, n_parts))
        y, parts, oldest = np.zeros((0, *u.shape[1:])), np.zeros((0, 0)), 0  # changes, and each node's parts of them
        for first in range(0, n_nodes, BLOCK):
            now, last, rank = slice(first, first + BLOCK), min(first + BLOCK, n_nodes), len(y)
            trajectory = points[2 * first : 2 * (first + BLOCK) + 1], pace[now], u[now], v[now]
            kept = np.pad(y, [(0, -rank % fresh)] + [(0, 0)] * (u.ndim - 1))
            rows = [(kept[k : k + fresh], np.False_) for k in range(0, rank, fresh)]
            rows.append((np.zeros((fresh, *y.shape[1:])), np.True_))
            found_with = [influences(self.arrays, *trajectory, interaction.basis, mass, *some) for some in rows]
            y = np.concatenate([changed for changed, _ in found_with])
            seen = np.concatenate([at_nodes.swapaxes(0, 1) for _, at_nodes in found_with])
            present = np.append(np.arange(rank), np.arange(len(y) - fresh, len(y)))
            y, parts = y[present], block_diag(parts, np.eye(fresh))
            made = np.tensordot(seen[present], parts, (0, 0)).reshape(BLOCK, n_parts, -1, n_parts)
            result[first:last, oldest:last] = made.transpose(0, 2, 1, 3)[: last - first, : last - oldest]
            weighted = (y * v[first + BLOCK]).reshape(len(y), -1)
            _, sizes, turned = np.linalg.svd(np.linalg.qr(weighted.T, mode="r"), full_matrices=False)
            turned = turned[sizes > FINER * negligible]
            y, weighted, parts = np.tensordot(turned, y, 1), turned @ weighted, turned @ parts
            while parts.size and np.abs(parts[:, :fresh].T @ weighted).sum(1).max() < negligible:
                parts, oldest = parts[:, fresh:], oldest + BLOCK
        return result

    def final_correlations(self, found: Instanton) -> tuple[Float[np.ndarray, "nodes fields"], float]:
        """Covariance of the fields of one agent with l of the state where it ends, and the variance of l."""
        u, v = self._uv(found)
        path = self._padded(found.logarithms)
        covariance, variance = final_correlations(self.arrays, *path, u, v, self.ending.left)
        return covariance[: self.mesh.n_nodes], float(variance)

    def met_others(self, found: Instanton) -> Vector:
        """Gain of agents from not meeting themselves, at the nodes; see `core._instanton`."""
        u, v = self._uv(found)
        n_nodes = self.mesh.n_nodes
        return met_others(self.arrays, _members(self.arrays), u, v, np.int64(n_nodes - 1))[:n_nodes]

    def _padded(self, logarithms: Logarithms) -> tuple[np.ndarray, np.ndarray, np.int64]:
        """Fields at nodes and middles, the pace of steps, and their number, in arrays of a size that is kept."""
        pace, n_steps = self.mesh.pace, self.mesh.n_nodes - 1
        unused = _size(n_steps + 1) - n_steps - 1
        points = np.pad(halves(logarithms), ((0, 2 * unused), (0, 0)), mode="edge")
        pace = np.stack([pace[:-2:2], pace[1::2], pace[2::2]], axis=1)
        return points, np.pad(pace, ((0, unused), (0, 0))), np.int64(n_steps)

    def _uv(self, found: Instanton) -> tuple[np.ndarray, np.ndarray]:
        """u and v at the nodes, in arrays of a size that is kept."""
        *_, u, v = self._swept(found.logarithms, self._programs[0], self.strength)
        return u, v

    def _swept(self, logarithms: Logarithms, program: Callable, strength: float) -> tuple[np.ndarray, ...]:
        self.evaluations += 1
        left, level, _, width, base, bend = self.ending
        bend = bend or Bend(np.zeros((BENT, *left.shape)), np.zeros(BENT), np.inf)
        ending = np.broadcast_to(base, left.shape), left, *map(np.float64, (level, width)), tuple(bend)
        return program(self.arrays, *self._padded(logarithms), self.start, ending, np.float64(strength))

    def nearest(self, starts: list[Logarithms]) -> Logarithms:
        """The one of the smallest residual."""
        if len(starts) == 1:
            return starts[0]
        found = [self.evaluate(start) for start in starts]
        return starts[int(np.argmin([np.inf if one is None else one.size for one in found]))]

    def solve(
        self, start: Logarithms, tolerance: float, most: int, before: PathProblem | None = None, wait: float = 1.0
    ) -> Instanton | None:
        """The instanton by Newton's method, or None if it does not converge within about so many evaluations.

        The inverse of the Jacobian starts as an approximation from the problem `before`, whose fields were `moved`.
        """
        if before is not None:
            same = before.mesh is self.mesh
            self.inverse = before.inverse if same else before.inverse.moved(before.mesh, self.mesh, wait)
            used = self.evaluations
            found = newton(self.evaluate, start, tolerance, most, self.inverse)
            if found is not None or self.evaluations - used >= most:
                return found
            self.inverse = Inverse()  # the inverse of another path may mislead
        return newton(self.evaluate, start, tolerance, most, self.inverse)


def _members(arrays: Arrays) -> Float[np.ndarray, "classes ..."]:
    """1 for the states of each class and 0 elsewhere."""
    if len(arrays) == 3:
        kinds, n_states = arrays[0].shape[:2]
        return np.repeat(np.eye(kinds)[..., None], n_states, axis=-1)
    classes = arrays[5]
    return (classes == np.unique(classes)[:, None]).astype(float)


class Departure(PathProblem):
    """The path from exactly the composition x₀, where agents do not fluctuate; its strength is positive.

    A strength that is not given is one more unknown, whose logarithm is a last row of the unknowns of Newton's method.
    """

    _programs = departure, departing_fields

    def _uv(self, found: Instanton) -> tuple[np.ndarray, np.ndarray]:
        *_, u, v = self._swept(found.logarithms, departure, found.strength)
        return u, v

    def evaluate(self, logarithms: Logarithms) -> Instanton | None:
        given = not np.isnan(self.strength)
        fields = logarithms if given else logarithms[:-1]
        logarithm = np.log(self.strength) if given else logarithms[-1, 0]
        again, passed, action = self._swept(fields, departing_fields, np.exp(logarithm))
        again = again[: self.mesh.n_nodes]
        if not (np.isfinite(again).all() and np.isfinite(action) and (given or np.isfinite(passed))):
            return None
        if not given:  # to first order, since where fields are far from the path it may be passed on the other side
            row = np.zeros((1, again.shape[1]))
            row[0, 0] = logarithm + passed * np.exp(-logarithm) - 1
            again = np.vstack([again, row])
        return Instanton(logarithms, again, float(np.exp(logarithm)), float(action))

    def solve_with_strength(self, start: Logarithms, strength: float, tolerance: float, most: int) -> Instanton | None:
        """The instanton of unknown strength, from a guess and its strength."""
        row = np.zeros((1, start.shape[1]))
        row[0, 0] = np.log(strength)
        found = self.solve(np.vstack([start, row]), tolerance, most)
        return found and found._replace(logarithms=found.logarithms[:-1], again=found.again[:-1])


def resting(arrays: Arrays, x: Trajectories) -> Logarithms:
    """Logarithms of the fields of compositions x without momentum."""
    return fields_along(arrays, x, np.zeros_like(x))


def fields_along(arrays: Arrays, x: Trajectories, p: Trajectories) -> Logarithms:
    """Logarithms of the fields at the nodes of a path; those that vanish are -690."""
    return path_fields(arrays, filled(x), filled(p), np.int64(len(x) - 1))[: len(x)]


def action_slope(
    arrays: Arrays, x: Trajectories, p: Trajectories, weights: Vector, decay: float, growth: float
) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of the action with respect to q, and ∫ x dS, each composition weighted by its part of the action.

    Integrals over time have `weights` at the nodes. Outside the path p grows with the rate `decay` and falls with the
    rate `growth`, and the action twice as fast.
    """
    by_q, *_ = path_slopes(arrays, filled(x, "edge"), filled(p, "edge"), filled(weights))
    work, _ = action_rates(arrays, x, p)
    parts = weights * work
    parts[[0, -1]] -= work[[0, -1]] / (2 * np.array([decay, growth]))
    return by_q, np.tensordot(parts, x, 1)


def action_rates(arrays: Arrays, x: Trajectories, p: Trajectories) -> tuple[Vector, Vector]:
    """p·dx/dt - H and H at the nodes of a path."""
    work, energy = path_rates(arrays, filled(x), filled(p), np.int64(len(x) - 1))
    return work[: len(x)], energy[: len(x)]


def filled(trajectory: np.ndarray, mode: Literal["constant", "edge"] = "constant") -> np.ndarray:
    """Rows of zeros after the last, or more of the last, up to a number for which programs are kept."""
    return np.pad(trajectory, [(0, _size(len(trajectory)) - len(trajectory))] + [(0, 0)] * (trajectory.ndim - 1), mode)


def _size(n_nodes: int) -> int:
    """The next of few numbers of nodes."""
    size = FEWEST
    while size + 1 < n_nodes:
        size *= 4
    return size + 1


def moved(logarithms: Logarithms, before: Mesh, after: Mesh, wait: float) -> Float[np.ndarray, "others fields"]:
    """Fields at the times of a longer mesh: the values at `wait` times the old end, and at the end, last longer."""
    at, extra = wait * before.time[-1], (after.time[-1] - before.time[-1]) * (0.5 if 0 < wait < 1 else 1.0)
    old, time = before.time[::2], after.time[::2]
    source = np.minimum(np.where(time < at, time, np.maximum(at, time - extra)), old[-1])
    left = np.clip(np.searchsorted(old, source, side="right") - 1, 0, len(old) - 2)
    part = ((source - old[left]) / (old[left + 1] - old[left]))[:, None]
    return (1 - part) * logarithms[left] + part * logarithms[left + 1]


@one_blas_thread()
def newton(
    evaluate: Callable[[Logarithms], Instanton | None],
    start: Logarithms,
    tolerance: float,
    most: int,
    inverse: Inverse,
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
        step = _step(counted, found, inverse, krylov)
        nearer = _nearer(counted, found, step)
        if nearer is None and krylov == exact:
            return None
        if nearer is None or nearer.size > SLOW * found.size:
            krylov = exact
        found = found if nearer is None else nearer
    return found


class Inverse:
    """The inverse of the Jacobian on vectors with known products with it, or with the Jacobian of an earlier problem.

    Elsewhere it is 1.
    """

    def __init__(self) -> None:
        self.parts: list[tuple[np.ndarray, np.ndarray]] = []  # changes, of parts along orthonormal images

    def of(self, images: np.ndarray) -> np.ndarray:
        """The vectors, in columns, whose products with the Jacobian are approximately these."""
        return images + sum(changes @ (known.T @ images) for changes, known in self.parts)

    def solution(self, product: Callable[[np.ndarray], np.ndarray], wanted: np.ndarray, tolerance: float) -> np.ndarray:
        """The vector whose product is `wanted`, by generalised conjugate residuals (Eisenstat et al. 1983)."""
        directions, images = (np.empty((wanted.size, MAX_KRYLOV), order="F") for _ in range(2))
        found, rest, number = np.zeros_like(wanted), wanted, 0
        following = rest
        while number < MAX_KRYLOV and np.linalg.norm(rest) > tolerance * np.linalg.norm(wanted):
            direction: np.ndarray = self.of(following)
            image: np.ndarray = product(direction)
            for _ in range(2):  # rounding leaves parts along the others
                along: np.ndarray = images[:, :number].T @ image
                image, direction = image - images[:, :number] @ along, direction - directions[:, :number] @ along
            size = np.linalg.norm(image)
            if not size > 0:
                break
            directions[:, number], images[:, number] = direction / size, image / size
            part = images[:, number] @ rest
            found, before, rest = found + part * directions[:, number], rest, rest - part * images[:, number]
            # A residual that stays as it is gives no new direction
            stays = np.linalg.norm(rest) > STAYS * np.linalg.norm(before)
            following = images[:, number] if stays else rest
            number += 1
        self._add(directions[:, :number], images[:, :number])
        return found

    def _add(self, directions: np.ndarray, images: np.ndarray) -> None:
        self.parts.append((directions - self.of(images), images))

    def moved(self, before: Mesh, after: Mesh, wait: float = 1.0) -> Inverse:
        """The same on another mesh."""
        found = Inverse()
        if self.parts:
            images = np.linalg.qr(np.hstack([known for _, known in self.parts[::-1]])[:, :MOST_KNOWN])[0]
            directions, images = (
                moved(columns.reshape(before.n_nodes, -1), before, after, wait).reshape(-1, columns.shape[1])
                for columns in (self.of(images), images)
            )
            images, factor = np.linalg.qr(images)
            found._add(solve_triangular(factor, directions.T, trans="T").T, images)
        return found


def _step(evaluate: Callable, found: Instanton, inverse: Inverse, tolerance: float) -> Logarithms:
    def product(direction: np.ndarray) -> np.ndarray:
        scale = DIFFERENCE / max(np.abs(direction).max(), 1e-300)
        there = evaluate(found.logarithms + scale * direction.reshape(found.logarithms.shape))
        return direction * np.nan if there is None else (found.residual - there.residual).ravel() / scale

    return inverse.solution(product, found.residual.ravel(), tolerance).reshape(found.logarithms.shape)


def _nearer(evaluate: Callable, found: Instanton, step: Logarithms) -> Instanton | None:
    part = min(1.0, FARTHEST / np.abs(step).max())
    while part > SMALLEST_PART:
        there = evaluate(found.logarithms + part * step)
        if there is not None and there.size < max(ROUGH, (1 - part / 10) * found.size):
            return there
        part /= 2
    return None
