"""Branches of fixed points of reaction models along a parameter, by pseudo-arclength continuation.

Fixed points form curves in the space of compositions and parameter. With s the parameter between 0 and 1, y coordinates
of x on a closed face, G(y, s) the drift in them and t the unit tangent of the curve at z₀, the next point z = (y, s)
solves

    G(z) = 0,   t·(z - z₀) = step.

Where ds/dt changes its sign the branch has a fold. Where det(∂G/∂z; t) does another branch crosses: the null space of
∂G/∂z then holds the tangents of both. So does an eigenvalue of agents in further states where a branch of a larger face
begins. Where a pair of complex eigenvalues crosses the imaginary axis there is a Hopf bifurcation. Each is found
between two points of the curve by Brent's method; steps are halved until no two are in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import null_space
from scipy.optimize import brentq
from tqdm.auto import tqdm

from meanfield._numerics.stability import MARGINAL
from meanfield._population.reaction_model import ReactionModel
from meanfield._reactions.modes import tangent_space
from meanfield._reactions.roots import closed_face, closed_faces
from meanfield._reactions.search import search

# Values of the parameter at which fixed points are searched for; bifurcations are more likely at round numbers. Those
# near the ends find states that a few committed agents destroy.
SLICES = np.append((np.arange(5) + 0.4638) / 5, [0.0046, 0.9954])
SMALL_DIFFERENCE = 1e-7  # of s, for a derivative whose error Newton's method corrects
DIFFERENCE = 1e-4  # of z, for second derivatives that only speed Newton's method
ITERATIONS = 8
CONVERGED, ROUGHLY = 1e-12, 1e-7  # Newton step; the second next to branch points, where rounding moves it
TURN = 0.95  # the least cosine between neighbouring tangents
LEAST_STEP = 1e-6  # in units of the largest
MOST_POINTS = 3000  # of a branch
SAME = 1e-6  # as in `search`
EMPTY = 1e-9  # fraction of agents below which nobody is in a state
NEAR_BORDER = 1e-4  # of z; at the border of a face the equations of two branches are solved
FEW = 1e-3  # fraction of agents below which a branch goes straight to the border
LEFT = 1e-6  # part of the fewest agents that a step which leaves the face keeps
AT_BORDER = 1e-2  # eigenvalue where a branch reaches it, and the error of the place
FINEST = 1e-3  # step in units of the largest within which several bifurcations are one
ROUNDING = 1e-13  # of fractions of agents
ZERO, ROOT = 1e-12, 1e-6  # of tests, where they are 0 and where they do not jump
MOST_BRANCHES, MOST_IN_ALL = 200, 10_000  # the second of points
VERTICAL = 1e-6  # ds/dt below which rounding makes its sign
FLAT = 1e-6  # singular values that are zero at a bifurcation known to 1e-10

FOLD, HOPF, BRANCH_POINT = "fold", "Hopf", "branch point"


class Point(NamedTuple):
    """A point of a branch, with the kind of its bifurcation or ''."""

    x: Float[np.ndarray, " states"]
    s: float
    kind: str


class Branches(NamedTuple):
    """Branches, the number of those that were cut short, and of fixed points in continua, which are not followed."""

    points: list[list[Point]]
    cut: int
    continua: int


class Family:
    """Models and masses of their conserved classes along s from 0 to 1, with the states and classes of those at 1/2."""

    def __init__(
        self,
        model_at: Callable[[float], ReactionModel],
        masses_at: Callable[[float], Float[np.ndarray, " classes"]],
    ) -> None:
        self.at, self.masses_at = lru_cache(maxsize=64)(model_at), masses_at
        self.typical = self.at(0.5)
        self.face = masses_at(0.5)[self.typical.classes] > 0

    def drift(self, x: np.ndarray, s: float) -> Float[np.ndarray, " states"]:
        """The drift in units of the fastest rate of the typical model."""
        return self.at(s).drift(x) / self.typical.fastest

    def jacobian(self, x: np.ndarray, s: float) -> Float[np.ndarray, "states states"]:
        """The derivative of the drift with respect to x."""
        return self.at(s).jacobian(x) / self.typical.fastest


class _Stop(NamedTuple):
    """A point of a curve, its tangent, and what tells of bifurcations between two points."""

    z: Float[np.ndarray, " unknowns"]
    tangent: Float[np.ndarray, " unknowns"]
    crossing: float  # changes its sign where another branch of the face crosses
    modes: tuple[np.ndarray, np.ndarray]  # eigenvalues within the face, and of agents in further states

    def unstable(self, block: int) -> int:
        return int((self.modes[block].real > MARGINAL).sum())

    def zeros(self, block: int) -> int:
        return int((np.abs(self.modes[block].real) <= MARGINAL).sum())

    def odd(self, block: int, neutral: int) -> float:
        """Changes its sign where an odd number of real eigenvalues do, but for so many that stay 0."""
        values = self.modes[block]
        real = values.real[np.abs(values.imag) <= MARGINAL]
        real = real[np.argsort(np.abs(real))][neutral:]
        return float(np.prod(np.sign(real)) * np.abs(real[0])) if real.size else np.nan

    def nearest(self, block: int, is_complex: bool) -> float:
        """The smallest real part of real or of complex eigenvalues."""
        values = self.modes[block]
        real = values.real[(np.abs(values.imag) > MARGINAL) == is_complex]
        return float(real[np.argmin(np.abs(real))]) if real.size else np.nan


class _Curve:
    """The curve through a fixed point within the face of its support; z = (y, s) with x = x_0 m(s)/m(s_0) + T y.

    m are the masses of the classes. Beyond s = 0 and 1 the drift goes on as a straight line.
    """

    def __init__(
        self, family: Family, x: Float[np.ndarray, " states"], s: float, face: Bool[np.ndarray, " states"]
    ) -> None:
        self.family, self.face = family, face
        total = family.masses_at(s)[family.typical.classes]
        self.parts = np.divide(x, total, out=np.zeros_like(x), where=total > 0)
        self.basis = tangent_space(family.typical, face)
        everywhere = tangent_space(family.typical, family.face)
        # A face is closed, so that the Jacobian is triangular: what agents in further states do is a block of its own
        self.outwards = everywhere @ null_space((everywhere.T @ self.basis).T) if self.basis.size else everywhere

    def at(self, x: np.ndarray, s: float) -> Float[np.ndarray, " unknowns"]:
        """The unknowns of a composition."""
        return np.append(self.basis.T @ (x - self._origin(s)), s)

    def composition(self, z: np.ndarray) -> Float[np.ndarray, " states"]:
        return self._origin(z[-1]) + self.basis @ z[:-1]

    def _origin(self, s: float) -> Float[np.ndarray, " states"]:
        inside = min(max(float(s), 0.0), 1.0)
        return self.parts * self.family.masses_at(inside)[self.family.typical.classes]

    def fewest(self, z: np.ndarray) -> float:
        """The smallest fraction of agents in a state of the face, negative outside."""
        return float(self.composition(z)[self.face].min()) if z.size > 1 else 1.0

    def room(self, z: np.ndarray, least: float) -> float:
        """The distance to the borders: to so small a fraction in a state, and of the parameter; negative outside."""
        return min(self.fewest(z) - least, z[-1], 1 - z[-1])

    def derivative(self, z: np.ndarray) -> Float[np.ndarray, "equations unknowns"]:
        z, _ = _inside(z)
        by_y = self.basis.T @ self.family.jacobian(self.composition(z), float(z[-1])) @ self.basis
        return np.column_stack([by_y, self._by_parameter(z)])

    def residual(self, z: np.ndarray) -> Float[np.ndarray, " equations"]:
        z, beyond = _inside(z)
        missed = self.basis.T @ self.family.drift(self.composition(z), float(z[-1]))
        return missed + beyond * self._by_parameter(z) if beyond else missed

    def _by_parameter(self, z: np.ndarray) -> Float[np.ndarray, " equations"]:
        h = SMALL_DIFFERENCE if z[-1] < 0.5 else -SMALL_DIFFERENCE
        return (self.residual(z + h * np.eye(z.size)[-1]) - self.residual(z)) / h

    def corrected(self, z: np.ndarray, normal: np.ndarray) -> np.ndarray | None:
        """Where the curve meets the plane through z with this normal, or None if Newton's method does not end."""
        at, step = z, np.full(z.size, np.inf)
        for _ in range(ITERATIONS):
            missed = np.append(self.residual(at), normal @ (at - z))
            try:
                step = np.linalg.solve(np.vstack([self.derivative(at), normal]), -missed)
            except np.linalg.LinAlgError:
                return None
            at = at + step
            if not np.abs(step).max() < 1:
                return None
            if np.abs(step).max() < CONVERGED:
                return at
        return at if np.abs(step).max() < ROUGHLY else None

    def stop(self, z: np.ndarray, along: np.ndarray | None = None) -> _Stop:
        """The point with its tangent, in the sense of `along`, eigenvalues and tests."""
        derivative = self.derivative(z)
        tangent = np.linalg.svd(np.vstack([derivative, np.zeros(z.size)]))[2][-1]
        if along is not None and tangent @ along < 0:
            tangent = -tangent
        extended = np.vstack([derivative, tangent])
        crossing = np.linalg.slogdet(extended)[0] * np.linalg.svd(extended, compute_uv=False)[-1]
        inside, _ = _inside(z)
        jacobian = self.family.jacobian(self.composition(inside), float(inside[-1]))
        modes = [np.linalg.eigvals(T.T @ jacobian @ T).astype(complex) for T in (self.basis, self.outwards)]
        return _Stop(z, tangent, float(crossing), (modes[0], modes[1]))

    def follow(self, first: _Stop, spacing: float) -> Iterator[tuple[_Stop, str]]:
        """Points along the tangent of the first one, with bifurcations among them, to a border or back to it."""
        here, step = first, spacing
        for number in range(MOST_POINTS):
            found = self._onwards(here, step, spacing)
            if found is None:
                break
            there, step, met, ends = found
            reached = (there.z - here.z) @ here.tangent
            ahead = (first.z - here.z) @ here.tangent
            closes = number > 2 and here.tangent @ first.tangent > TURN and 0 < ahead <= reached
            closes = closes and np.abs(first.z - here.z).max() < 2 * reached
            yield from ((stop, kind) for stop, kind in met if not closes or (stop.z - here.z) @ here.tangent < ahead)
            if closes:
                yield first, ""
                return
            yield there, BRANCH_POINT if ends and SAME < there.z[-1] < 1 - SAME else ""
            if ends:
                return
            here, step = there, min(1.5 * step, spacing)
        yield here, "cut"

    def _onwards(
        self, here: _Stop, step: float, spacing: float
    ) -> tuple[_Stop, float, list[tuple[_Stop, str]], bool] | None:
        """The next point, the step, what lies between, and whether it is the last one; steps part bifurcations."""
        fewest = self.fewest(here.z)
        # At the border Newton's method may end at the branch of the smaller face; rounding is not a border
        least = LEFT * fewest if fewest > ROUNDING else -ROUNDING
        while step > LEAST_STEP * spacing:
            there = self._next(here, step)
            ends = there is not None and bool(self.room(there.z, least) < 0)
            if there is not None and self.fewest(there.z) < least and self.fewest(here.z) > FEW:
                there = None  # first nearer
            elif ends:
                there = self._between(here, step, lambda stop: self.room(stop.z, least))
                if there is not None and SAME < there.z[-1] < 1 - SAME:
                    at_zero = min(np.abs(values).min(initial=np.inf) for values in there.modes) < AT_BORDER
                    there = there if at_zero else None
            if there is not None:
                reached = float((there.z - here.z) @ here.tangent)
                finest = step < FINEST * spacing
                met, resolved = self._bifurcations(here, there, reached, finest)
                if ends:
                    met = [one for one in met if np.abs(one[0].z - there.z).max() > NEAR_BORDER]
                if resolved or finest:
                    return there, step, met, ends
            step /= 2
        return None

    def _next(self, here: _Stop, step: float) -> _Stop | None:
        ahead = here.z + step * here.tangent
        z = self.corrected(ahead, here.tangent)
        if z is None or np.linalg.norm(z - ahead) > step / 2:
            return None
        there = self.stop(z, here.tangent)
        return there if there.tangent @ here.tangent > TURN else None

    def _between(self, here: _Stop, step: float, test: Callable[[_Stop], float]) -> _Stop | None:
        """The point within a step at which a test is 0, or None if it has no change of sign, or jumps."""

        def at(part: float) -> _Stop:
            z = self.corrected(here.z + part * here.tangent, here.tangent)
            return self.stop(here.z if z is None else z, here.tangent)

        for part in (0.0, step):
            if abs(test(at(part))) < ZERO:
                return at(part)
        try:
            part = brentq(lambda part: test(at(part)), 0.0, step, xtol=1e-11 * step)
        except ValueError:
            return None
        found = at(part)
        return found if abs(test(found)) < ROOT else None

    def _crossed(self, here: _Stop, there: _Stop, step: float) -> _Stop | None:
        """The point within a step where another branch of the face crosses, or None if it is not found.

        There G = 0 and ψ·∂G/∂z = 0 for some ψ. Newton's method for z, ψ and μ with G + μψ = 0, |ψ| = 1 has a regular
        Jacobian at simple branch points (Moore, Numer. Funct. Anal. Optim. 2, 441 (1980)); along the curve it has none.
        """
        part = here.crossing / (here.crossing - there.crossing)
        z = here.z + part * (there.z - here.z)
        psi, mu, size = np.linalg.svd(self.derivative(z))[0][:, -1], 0.0, z.size
        moves = DIFFERENCE * np.eye(size)
        for _ in range(ITERATIONS):
            G = self.derivative(z)
            bent = [psi @ (self.derivative(z + move) - self.derivative(z - move)) / (2 * DIFFERENCE) for move in moves]
            matrix = np.block(
                [
                    [G, mu * np.eye(size - 1), psi[:, None]],
                    [np.array(bent), G.T, np.zeros((size, 1))],
                    [np.zeros((1, size)), 2 * psi, np.zeros((1, 1))],
                ]
            )
            missed = np.concatenate([self.residual(z) + mu * psi, psi @ G, [psi @ psi - 1]])
            try:
                # Without its type pyright takes 16 s to find those of the loop
                change: np.ndarray = np.linalg.solve(matrix, -missed)
            except np.linalg.LinAlgError:
                return None
            z, psi, mu = z + change[:size], psi + change[size:-1], mu + change[-1]
            if np.abs(change).max() < ROUGHLY:
                along = (z - here.z) @ here.tangent
                near = 0 <= along <= step and np.linalg.norm(z - here.z - along * here.tangent) < step / 2
                return self.stop(z, here.tangent) if near and abs(mu) < CONVERGED else None
        return None

    def _bifurcations(
        self, here: _Stop, there: _Stop, step: float, finest: bool
    ) -> tuple[list[tuple[_Stop, str]], bool]:
        """Bifurcations between two neighbouring points, and whether they explain all changes of stability.

        Unless the step is the `finest`, none are sought after one that is not found.
        """
        tests: list[tuple[str, Callable[[_Stop], float]]] = []
        steepest = max(abs(here.tangent[-1]), abs(there.tangent[-1]))
        crosses = here.crossing * there.crossing < 0
        crossed = self._crossed(here, there, step) if crosses else None
        met = [] if crossed is None else [(crossed, BRANCH_POINT)]
        if here.tangent[-1] * there.tangent[-1] < 0 and steepest > VERTICAL:
            turns = step * here.tangent[-1] / (here.tangent[-1] - there.tangent[-1])
            if crossed is None or abs(turns - (crossed.z - here.z) @ here.tangent) > step / 4:
                tests.append((FOLD, lambda stop: stop.tangent[-1]))
        if crosses and crossed is None:
            tests.append((BRANCH_POINT, lambda stop: stop.crossing))
        known, resolved = len(tests) + len(met), True
        for block in (0, 1):
            changed = abs(there.unstable(block) - here.unstable(block))
            neutral = min(here.zeros(block), there.zeros(block))
            if block == 0 and known and changed <= 1:
                continue  # a fold or a crossing; both together where a branch turns at another one
            if changed % 2:
                tests.append((BRANCH_POINT, lambda stop, b=block, n=neutral: stop.odd(b, n)))
            elif changed == 2 and here.nearest(block, True) * there.nearest(block, True) < 0:
                tests.append((HOPF, lambda stop, b=block: stop.nearest(b, True)))
                continue
            elif changed:
                tests.append((BRANCH_POINT, lambda stop, b=block: stop.nearest(b, False)))
            resolved &= changed <= 1
        for kind, test in tests:
            stop = self._between(here, step, test)
            if stop is not None:
                met.append((stop, kind))
            elif not finest:
                return [], False
        met.sort(key=lambda one: (one[0].z - here.z) @ here.tangent)
        kept: list[tuple[_Stop, str]] = []
        for stop, kind in met:
            if kept and np.abs(stop.z - kept[-1][0].z).max() < NEAR_BORDER:
                # A branch that turns where another one crosses has a branch point there
                kept[-1] = kept[-1] if kept[-1][1] == BRANCH_POINT else (stop, kind)
            else:
                kept.append((stop, kind))
        return kept, resolved and len(met) == len(tests) + (crossed is not None) and len(kept) <= 1


def _inside(z: np.ndarray) -> tuple[np.ndarray, float]:
    """z with s between 0 and 1, and how far s lies beyond."""
    s = min(max(z[-1], 0.0), 1.0)
    return np.append(z[:-1], s), float(z[-1] - s)


def branches_of(family: Family, spacing: float, starts: int, seed: int, progress: bool) -> Branches:
    """All branches through fixed points found at some values of the parameter, and those that cross them."""
    rng = np.random.default_rng(seed)
    waiting: list[tuple[np.ndarray, float]] = []
    continua = 0
    for s in SLICES:
        model, masses = family.at(float(s)), family.masses_at(float(s))
        faces = closed_faces(model, masses, rng)
        roots = search(model, masses, faces, np.empty((0, model.n_states)), starts, rng, False, trajectories=0).roots
        continua += sum(root.continuum for root in roots)
        waiting += [(root.x, float(s)) for root in roots if not root.continuum]
    curves: list[tuple[_Curve, list[Point]]] = []
    cut = 0
    with tqdm(disable=not progress, unit="branch", leave=False) as bar:
        while waiting:
            if len(curves) == MOST_BRANCHES or sum(len(points) for _, points in curves) > MOST_IN_ALL:
                cut += 1
                break
            x, s = waiting.pop(0)
            if any(_lies_on(curve, points, x, s, spacing) for curve, points in curves):
                continue
            curve = _Curve(family, x, s, closed_face(family.at(s), x > EMPTY))
            first = curve.stop(curve.at(x, s))
            ahead = list(curve.follow(first, spacing))
            closed = len(ahead) > 3 and ahead[-1][0] is first
            behind = [] if closed else list(curve.follow(curve.stop(first.z, -first.tangent), spacing))
            cut += sum(kind == "cut" for _, kind in (*ahead, *behind))
            stops = [*reversed(behind), (first, ""), *ahead]
            stops = _without_doubles(stops)
            points = [
                Point(np.maximum(curve.composition(stop.z), 0), min(max(float(stop.z[-1]), 0.0), 1.0), kind)
                for stop, kind in stops
                if kind != "cut"
            ]
            curves.append((curve, points))
            waiting += [
                start for stop, kind in stops if kind == BRANCH_POINT for start in _crossing(curve, stop, spacing)
            ]
            bar.update()
    located = [[point for point in points[1:-1] if point.kind == BRANCH_POINT] for _, points in curves]
    joined = []
    for number, (_, points) in enumerate(curves):
        others = [point for other, some in enumerate(located) if other != number for point in some]
        joined.append(_joined(points, others, spacing))
    return Branches(joined, cut, continua)


def _without_doubles(stops: list[tuple[_Stop, str]]) -> list[tuple[_Stop, str]]:
    """One stop at each place: the bifurcation where it is at a point of the curve."""
    kept: list[tuple[_Stop, str]] = []
    for stop, kind in stops:
        if kept and "cut" not in (kind, kept[-1][1]) and np.abs(stop.z - kept[-1][0].z).max() < SAME:
            kept[-1] = (stop, kind or kept[-1][1])
        else:
            kept.append((stop, kind))
    return kept


def _joined(points: list[Point], met: list[Point], spacing: float) -> list[Point]:
    """The branch with its ends at branch points where others go through them, and so know them better."""

    def away(one: Point, other: Point) -> float:
        return max(float(np.abs(one.x - other.x).max()), abs(one.s - other.s))

    for end in (0, -1):
        last = points[end]
        near = min(met, key=lambda one: away(one, last), default=last)
        if last.kind == BRANCH_POINT and away(near, last) < min(spacing / 2, AT_BORDER):
            # The curve through the border belongs to the other branch
            while len(points) > 2 and away(points[1 if end == 0 else -2], near) < away(last, near) + SAME:
                points.pop(1 if end == 0 else -2)
            points[end] = near
    return points


def _lies_on(curve: _Curve, points: list[Point], x: np.ndarray, s: float, spacing: float) -> bool:
    """Whether the branch goes through a fixed point."""
    if (curve.face != closed_face(curve.family.at(s), x > EMPTY)).any():
        return False
    z = curve.at(x, s)
    corners = np.array([curve.at(point.x, point.s) for point in points])
    ways = np.diff(corners, axis=0)
    lengths = np.linalg.norm(ways, axis=1)
    for start, way, length in zip(corners[:-1][lengths > 0], ways[lengths > 0], lengths[lengths > 0], strict=True):
        part = (z - start) @ way / max(length**2, SAME**2)
        if -SAME <= part <= 1 + SAME and np.linalg.norm(z - start - part * way) < spacing:
            there = curve.corrected(start + part * way, way / length)
            if there is not None and np.abs(there - z).max() < SAME:
                return True
    return False


def _crossing(curve: _Curve, stop: _Stop, spacing: float) -> Iterator[tuple[np.ndarray, float]]:
    """Fixed points on other branches through a branch point."""
    family = curve.family
    here = curve.composition(stop.z)
    whole = _Curve(family, here, stop.z[-1], family.face)
    z = whole.at(here, stop.z[-1])
    _, sizes, rows = np.linalg.svd(whole.derivative(z))
    null = rows[int((sizes > FLAT * max(sizes.max(initial=0.0), FLAT)).sum()) :]
    tangent = np.append(whole.basis.T @ (curve.basis @ stop.tangent[:-1]), stop.tangent[-1])
    others = null_space(np.vstack([np.eye(len(tangent)) - null.T @ null, tangent]), rcond=1e-3)
    for direction in (*others.T, *-others.T):
        for away in (spacing, spacing / 10):
            there = whole.corrected(z + away * direction, direction)
            if there is None or not 0 <= there[-1] <= 1:
                continue
            x = whole.composition(there)
            if x[family.face].min() > -EMPTY:
                yield np.where(x > EMPTY, x, 0.0), float(there[-1])
                break
