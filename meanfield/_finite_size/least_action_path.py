"""The likeliest path over the saddle among many agents, however unlikely: the path of least action.

It is the instanton from empty memories (`core._instanton`). Newton's method may not find it for agents who hardly ever
slip. It then starts from agents who with a probability ε answer as at the saddle, and follows the path as ε falls: to
0, or to 1e-14 where some answers have probability 0. Weak noise changes nothing fast: its path is searched first, on a
coarse mesh; above κ = 1/2 the search begins anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from meanfield._finite_size.saddle_curve import SaddleCurve, class_means, flow, linearised, saddle_curve
from meanfield._numerics.trajectory import Vector, quadrature
from meanfield._population.mixture import Mixture
from meanfield.core._path_search import (
    FIRST,
    ROUGH,
    Ending,
    Instanton,
    Logarithms,
    Mesh,
    PathProblem,
    action_slope,
    fields_along,
    mesh_until,
    moved,
    resting,
)

Kinds = Float[np.ndarray, "kinds states"]
Trajectory = Float[np.ndarray, "nodes kinds states"]

MAX_NUMBERS = 2**24  # nodes times states: 0.13 GB for each of two trajectories
BALANCED = 1e-3  # scale of κ where the rate equation leads to the saddle
NO_PATH = "no path to the saddle was found"
NO_LONG_PATH = f"{NO_PATH}, or none that is long enough"  # κ is not next to nothing
WEAK, STRONG = 1.0, 0.5  # first time of a mesh for weak noise; κ from which noise acts earlier
SMALL, SMALLEST = 0.01, 1e-6  # κ, whose sign a coarse mesh may not tell, and which rounding leaves
APPROACHES = ((WEAK, 16.0), (FIRST, 32.0), (FIRST, 16.0), (FIRST, 8.0))  # first times of meshes, and first T
LONGER = (1.2, 1.5)  # the next T, at least and at most
LEAST = 1e-300  # of exp(p), which has a logarithm
SLOWEST = 1e-3  # saddle, by its eigenvalue: others are as good as marginal
TAIL_GROWTH = 0.05  # of steps
FADED = 16.0  # T, in units of the time in which a momentum fades
FINEST = 64  # parts of a step
END, SETTLED = 5e-4, 1e-4  # relative error of the momentum from its end; the change of κ allowed at half the step
FIELD_TOLERANCE, ON_THE_WAY = 1e-5, 1e-4  # of their logarithms, and before the last T
WAITS = (0.2, 0.4, 0.6, 0.8, 1.0)  # where paths may become longer, of T
NEARLY = 5e-2  # error of the momentum where no longer path is found, as where it waits near an attractor
TRUSTED = 0.45  # part of the series' range, where the last of ten terms is 1e-4 of the first
STUCK = 1e-4  # relative change of the momentum at the end by a longer time
SHORT_SEARCH = 300  # evaluations
LONG_SEARCH = 2 * 10**5  # evaluations times nodes, from a path that is near: few that converge take half
STARTS = (1e-3, 1e-2, 0.1, 0.3)  # ε
IMPOSSIBLE = 1e-14  # ε instead of 0: fields have logarithms
NEGLIGIBLE = 0.03  # ε, against the rarest answer
FIRST_RATIO, SMALLEST_RATIO, LARGEST_RATIO = 10**0.5, 1.1, 1e4  # of ε to the next
EASY = 150  # evaluations, below which the ratio grows


class LeastActionPath(NamedTuple):
    """A path and its momentum at nodes."""

    u: Trajectory  # x exp(-p)
    v: Trajectory  # exp(p)
    logarithms: Logarithms  # of the fields
    kappa: float  # √(2 · action); negative where noise acts backwards
    error: float  # relative error of κ
    mixture: Mixture  # with 1e-14 for answers of probability 0
    mesh: Mesh
    ends: Ending  # p decays with the saddle's positive eigenvalue after the last node

    @property
    def x(self) -> Trajectory:
        """Compositions."""
        return self.u * self.v

    @property
    def p(self) -> Trajectory:
        """Momenta."""
        return np.log(self.v)

    @property
    def time(self) -> Vector:
        return self.mesh.time[::2]

    @property
    def weights(self) -> Vector:
        """Weights of nodes in integrals over all times; after the last p decays exponentially."""
        weights = quadrature(self.mesh.pace[::2])
        weights[-1] += 1 / self.ends.growth
        return weights

    def slope(self, one: int = 0, other: int = 1) -> tuple[Kinds, Kinds]:
        """Derivative of κ in q of one word at the cost of the other, and x weighted by its part of the action."""
        by_q, passed = action_slope(tuple(self.mixture), self.x, self.p, self.weights, np.inf, self.ends.growth)
        action = passed.sum()
        kappa = self.kappa if abs(self.kappa) > SMALLEST else np.copysign(np.sqrt(2 * action), self.kappa)
        return (by_q[..., one] - by_q[..., other]) / kappa, passed / action


@np.errstate(all="ignore")  # iterates far from the path may leave all bounds
def least_action_path(
    mixture: Mixture, saddle: Kinds, left: Kinds, growth: float, scale: float = 0.0
) -> LeastActionPath | str:
    """The path of least action from empty memories, or the reason if none is found.

    It is stationary; whether another path has less action is not checked. `left` points towards the side that noise
    must reach.

    With a `scale` above 0 the rate equation may lead to either side: κ < 0 if it leads to the side of `left`, and noise
    acts backwards. κ is smooth through 0; where it is smaller than `scale` its errors are relative to `scale`.
    """
    if growth < SLOWEST:
        return f"the saddle is almost marginal (eigenvalue {growth:.2g}): a path there takes too long"
    left = left - class_means(saddle, left)
    left = left / np.abs(left).max()
    spread = float((left * linearised(tuple(mixture), saddle, left)[2]).sum())
    ends = Ending(left, 0.0, growth, spread / (2 * growth))
    least = 0.0 if mixture.q.min() > 0 else IMPOSSIBLE
    reason, noticed = NO_PATH, False
    for first_time, until in APPROACHES:
        search = _Search(mixture, saddle, ends, first_time, least, scale)
        mesh = mesh_until(until, 1, first_time)
        if mesh.n_nodes * saddle.size > MAX_NUMBERS:
            return _too_large(mesh.n_nodes, saddle.size, growth)
        found = _weak(search, mesh) if first_time == WEAK else _followed(search, mesh)
        noticed |= found is not None and found.kappa > SMALL
        if found is not None and search.allows(found):
            path = _settled(search, mesh, found, until)
            if not isinstance(path, str):
                return path
            if first_time == FIRST:
                reason = path
                break
    if reason == NO_PATH and not noticed and scale == 0:  # κ may be next to nothing
        nearly = least_action_path(mixture, saddle, left, growth, BALANCED)
        if not isinstance(nearly, str) and abs(nearly.kappa) < BALANCED:
            return nearly
    return NO_LONG_PATH if noticed and reason == NO_PATH else reason


class _Search(NamedTuple):
    mixture: Mixture
    saddle: Kinds
    ends: Ending
    first_time: float
    least: float  # probability of random answers
    scale: float
    curve: SaddleCurve | None = None  # on which the path ends

    @property
    def said(self) -> Vector:
        """The word share at the saddle."""
        return np.einsum("mi,mia->a", self.saddle, self.mixture.q) + self.mixture.committed

    def answering(self, at_random: float) -> Mixture:
        """Agents who with a probability `at_random` answer as at the saddle."""
        return self.mixture._replace(q=(1 - at_random) * self.mixture.q + at_random * self.said)

    def problem(self, mesh: Mesh, at_random: float | None = None) -> PathProblem:
        """The path of these agents, on a mesh; by default of those with the least probability of random answers."""
        mixture = self.answering(self.least if at_random is None else at_random)
        ends = self.ends if self.curve is None else self.curve.bent(self.ends)
        return PathProblem(tuple(mixture), ends, mesh, mixture.empty)

    def without_momentum(self, mesh: Mesh) -> Logarithms:
        """Fields at the saddle, for all times."""
        return np.tile(resting(tuple(self.mixture), self.saddle[None]), (mesh.n_nodes, 1))

    def size(self, found: Instanton) -> float:
        """Scale to which errors of κ are relative."""
        return max(abs(found.kappa), self.scale)

    def tolerance(self, found: Instanton, part: float) -> float:
        """Relative error of the fields, which the momentum changes by a number of the order of κ."""
        return part * float(np.clip(abs(found.kappa), SMALLEST, 1))

    def allows(self, found: Instanton) -> bool:
        """Whether κ, not yet settled, has the right sign."""
        return found.kappa > -SMALL or self.scale > 0

    def end_error(self, problem: PathProblem, found: Instanton) -> float:
        """The relative error from the end: how far p on the curve is from Hamilton's equations at the path's x.

        It stays large where p does no work, as at an attractor instead of the saddle.
        """
        ends, size, s = self.ends, self.size(found), found.strength
        beyond = self.curve is not None and (abs(s) > TRUSTED * self.curve.farthest or np.isinf(self.curve.duration(s)))
        if size == 0 or beyond:
            return np.inf
        p, change = s * ends.left, -s * ends.growth * ends.left  # and dp/dt
        if self.curve is not None:
            _, v, rate = self.curve.at(s)
            p, change = np.log(np.maximum(v, LEAST)), rate * self.curve.slope(s) / v
        u, v = problem.trajectories(found)
        _, _, by_x = flow(tuple(self.mixture), (u[-1] * v[-1])[None], p[None])
        off = float(np.ptp(change + by_x[0], axis=-1).max())
        return np.sqrt(ends.width) * off / (size * ends.growth * float(np.ptp(ends.left, axis=-1).max()))


def _weak(search: _Search, mesh: Mesh) -> Instanton | None:
    """The path if noise is weak."""
    problem = search.problem(mesh)
    found = problem.solve(search.without_momentum(mesh), FIELD_TOLERANCE, SHORT_SEARCH)
    if found is None or abs(found.kappa) > STRONG:
        return None
    return problem.solve(found.logarithms, search.tolerance(found, ON_THE_WAY), SHORT_SEARCH)


def _settled(search: _Search, mesh: Mesh, found: Instanton, until: float) -> LeastActionPath | str:
    """The path with as many and as long times as κ needs, which ends on the slow curve once it comes near."""
    ends, n_states = search.ends, search.saddle.size
    weak, said = search.first_time == WEAK, search.without_momentum(mesh)[0]
    problem = search.problem(mesh)
    parts, change, longest, tried, end = 1, np.inf, False, 0.0, search.end_error(problem, found)
    curve = saddle_curve(tuple(search.mixture), search.saddle, ends) if end > END else None
    while (short := not longest and end > END) or change > SETTLED:
        near = curve is not None and search.curve is None and abs(found.strength) < curve.farthest
        if short and near and until > tried:
            tried, bent = until, search._replace(curve=curve)
            another = bent.problem(mesh)
            better = another.solve(found.logarithms, search.tolerance(found, ON_THE_WAY), SHORT_SEARCH, problem)
            if better is not None and search.allows(better) and (nearer := bent.end_error(another, better)) < end:
                search, found, problem, end = bent, better, another, nearer
                continue
        fine = parts if short else 2 * parts
        factor = 1 + np.log(end / END) / (2 * ends.growth * until)  # the error falls with the square of the momentum
        time = until * float(np.clip(factor, *LONGER)) if short else until
        if time * ends.growth > FADED or fine > FINEST:
            return NO_PATH
        mesh = mesh_until(time, fine, search.first_time)
        if mesh.n_nodes * n_states > MAX_NUMBERS:
            return _too_large(mesh.n_nodes, n_states, ends.growth)
        another, enough = search.problem(mesh), short and end < NEARLY
        waits = WAITS if short and not weak and search.curve is None else WAITS[-1:]
        starts = [moved(found.logarithms, problem.mesh, mesh, wait) for wait in waits]
        if weak and search.curve is None:
            faded = np.exp(-ends.growth * np.maximum(mesh.time[::2] - until, 0.0))
            starts = [said + faded[:, None] * (starts[0] - said)]
        tolerance = search.tolerance(found, ON_THE_WAY if fine == 1 else FIELD_TOLERANCE)
        most = SHORT_SEARCH if enough else LONG_SEARCH // mesh.n_nodes
        better = another.solve(another.nearest(starts), tolerance, most, problem)
        if better is None and enough:
            longest = True
            continue
        if better is None or not search.allows(better):
            return NO_PATH
        if short and end > NEARLY and abs(better.strength / found.strength - 1) < STUCK:
            return NO_PATH  # it waits at an attractor, for any time
        if not short:
            change = abs(better.kappa - found.kappa) / max(search.size(found), search.size(better), SMALLEST**2)
        found, problem, until, parts, end = better, another, time, fine, search.end_error(another, better)
    if found.kappa <= -SMALLEST and search.scale == 0:
        return NO_PATH
    u, v = problem.trajectories(found)
    error, mixture = max(end**2, change), search.answering(search.least)
    path = LeastActionPath(u, v, found.logarithms, found.kappa, error, mixture, problem.mesh, ends)
    return path if search.curve is None else _with_tail(path, search.curve, found.strength)


def _with_tail(path: LeastActionPath, curve: SaddleCurve, strength: float) -> LeastActionPath:
    """The path and its way along the curve, in steps that grow, until nearly nothing of the momentum is left."""
    first = path.mesh.pace[-1]
    n_steps = int(np.ceil(np.log1p(TAIL_GROWTH * curve.duration(strength) / first) / TAIL_GROWTH))
    steps = TAIL_GROWTH * np.arange(1, 2 * n_steps + 1) / 2
    later = first / TAIL_GROWTH * np.expm1(steps)
    s = curve.later(strength, later[1::2])
    u, v, _ = curve.at(s)
    u, v = np.maximum(u, 0.0), np.maximum(v, LEAST)
    rest = np.power.outer(s, np.arange(len(curve.rate))) @ curve.action()
    shift = np.exp(rest / path.x[0].sum())[:, None, None]  # with which p·x is the action still to come
    logarithms = fields_along(tuple(path.mixture), u * v, np.log(v))
    return path._replace(
        u=np.concatenate([path.u, u * shift]),
        v=np.concatenate([path.v, v / shift]),
        logarithms=np.concatenate([path.logarithms, logarithms]),
        mesh=Mesh(
            np.append(path.mesh.time, path.mesh.time[-1] + later), np.append(path.mesh.pace, first * np.exp(steps))
        ),
    )


def _too_large(n_nodes: int, n_states: int, growth: float) -> str:
    """The reason for giving up a path that takes too much memory."""
    path = f"{n_nodes} times in {n_states} states"
    return f"the path to a saddle with eigenvalue {growth:.2g} needs {path}, more than are kept"


def _followed(search: _Search, mesh: Mesh) -> Instanton | None:
    """The path for the least probability of random answers, if necessary by following it from larger ones."""
    start = search.without_momentum(mesh)
    if (found := search.problem(mesh).solve(start, FIELD_TOLERANCE, SHORT_SEARCH)) is not None:
        return found
    for at_random in STARTS:
        problem = search.problem(mesh, at_random)
        if (found := problem.solve(start, ROUGH, SHORT_SEARCH)) is not None:
            break
    else:
        return None
    smallest = NEGLIGIBLE * search.mixture.q.min() if search.least == 0 else IMPOSSIBLE
    logarithm, slope, ratio = np.log(at_random), 0.0, FIRST_RATIO
    while True:
        last = at_random / ratio <= smallest
        following = smallest if last else at_random / ratio
        before, problem = problem, search.problem(mesh, search.least if last else following)
        move = np.log(following) - logarithm
        tolerance = FIELD_TOLERANCE if last else ROUGH
        tried = problem.solve(found.logarithms + move * slope, tolerance, SHORT_SEARCH, before)
        if tried is None:
            ratio = ratio**0.5
            if ratio < SMALLEST_RATIO:
                return None
            continue
        if last:
            return tried
        slope = (tried.logarithms - found.logarithms) / move
        found, at_random, logarithm = tried, following, logarithm + move
        if problem.evaluations < EASY:
            ratio = min(ratio**1.5, LARGEST_RATIO)
