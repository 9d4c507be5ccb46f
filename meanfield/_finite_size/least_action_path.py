"""The likeliest path over the saddle among many agents, however unlikely: the path of least action.

Noise carries N agents along a path with a chance of exp(-N κ²/2) to leading order in N. Here κ²/2 = ∫ p·dx/dt - h dt,
from Hamilton's equations of the interactions themselves (Freidlin and Wentzell, ch. 5):

    h(x, p) = ½ [Σ_ab g_ab g_ba / Σx - Σx],   g_ab = Σ_i x_i q_a(i) exp(p_Γ(i,a,b) - p_i).

N·h is the rate at which the mean of exp(N p·x) grows. The rates of this tilted population are as stiff as its noise is
strong. The canonical variables u_i = x_i exp(-p_i) and v_i = exp(p_i), however, obey linear equations that are not
stiff, given the messages g_ab(t): only these W² functions of time are unknown (`messages`). Newton's method may not
find them for agents who hardly ever slip. It then starts from agents who with a chance ε answer as at the saddle, and
follows the path as ε falls: to 0, or to 1e-14 where some answers have probability 0.

As h has degree one in x, d(p·x)/dt = p·dx/dt - h. So κ² = -2 log v of empty memories at time 0, where p·x goes to 0.
The action is stationary in the messages: κ is known better than they are.

Weak noise changes nothing fast. Its path is searched first, on a coarse mesh; above κ = 1/2 the search begins anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from meanfield._finite_size.action_rates import action_slope
from meanfield._finite_size.message_newton import ROUGH
from meanfield._finite_size.messages import (
    FIRST,
    SHORT_SEARCH,
    Ending,
    Found,
    Mesh,
    MessageProblem,
    Messages,
    mesh_until,
    moved,
)
from meanfield._finite_size.path_equations import PathEquations
from meanfield._numerics.course import Vector

NO_PATH = "no path to the saddle was found"
WEAK, STRONG = 1.0, 0.5  # first time of a mesh for weak noise; κ from which noise acts earlier
SMALL, SMALLEST = 0.01, 1e-6  # κ, whose sign a coarse mesh may not tell, and which rounding leaves
APPROACHES = ((WEAK, 16.0), (FIRST, 32.0), (FIRST, 16.0), (FIRST, 8.0))  # first times of meshes, and first T
LONGER = (1.2, 1.5)  # the next T, at least and at most
SLOWEST = 5e-4  # saddle, by its eigenvalue: others are as good as marginal
FADED = 16.0  # T, in units of the time in which a momentum fades
FINEST = 64  # parts of a step
END, SETTLED = 5e-4, 1e-4  # relative error of the momentum from its end; what half the step may change of κ
MESSAGE_TOLERANCE, ON_THE_WAY = 1e-5, 1e-4  # of their logarithms, and before the last T
WAITS = (0.2, 0.4, 0.6, 0.8, 1.0)  # where paths may become longer, of T
NEARLY = 5e-2  # error of the momentum where no longer path is found, as where it waits near an attractor
LONG_SEARCH = 10**6  # evaluations times nodes, from a path that is near
STARTS = (1e-3, 1e-2, 0.1, 0.3)  # ε
IMPOSSIBLE = 1e-14  # ε instead of 0: messages have logarithms
NEGLIGIBLE = 0.03  # ε, against the rarest answer
FIRST_RATIO, SMALLEST_RATIO, LARGEST_RATIO = 10**0.5, 1.1, 1e4  # of ε to the next
EASY = 150  # evaluations, below which the ratio grows


class LeastActionPath(NamedTuple):
    """A path and its momentum at nodes."""

    u: Float[np.ndarray, "nodes states"]  # x exp(-p)
    v: Float[np.ndarray, "nodes states"]  # exp(p)
    messages: Messages  # g_ab, shape (nodes, W, W)
    kappa: float  # √(2 · action); negative where noise acts backwards
    error: float  # relative error of κ
    equations: PathEquations  # the policy, with 1e-14 for answers of probability 0
    mesh: Mesh
    ends: Ending  # p decays with the saddle's positive eigenvalue after the last node

    @property
    def x(self) -> Float[np.ndarray, "nodes states"]:
        """Compositions."""
        return self.u * self.v

    @property
    def p(self) -> Float[np.ndarray, "nodes states"]:
        """Momenta."""
        return np.log(self.v)

    @property
    def time(self) -> Vector:
        return self.mesh.time[::2]

    def slope(self) -> tuple[Vector, Vector]:
        """Derivative of κ by q of the first word of two, and x at all times, weighted by their part of the action."""
        pace, growth = self.mesh.pace[::2], self.ends.growth
        slope, passed = action_slope(self.equations, self.u, self.v, self.messages, pace, growth=growth)
        action = passed.sum()
        kappa = self.kappa if abs(self.kappa) > SMALLEST else np.copysign(np.sqrt(2 * action), self.kappa)
        return slope / kappa, passed / action


@np.errstate(all="ignore")  # iterates far from the path may leave all bounds
def least_action_path(
    equations: PathEquations, saddle: Vector, left: Vector, growth: float, limit: int, scale: float = 0.0
) -> LeastActionPath | str:
    """The path of least action, or the reason if none is found.

    It is stationary; whether another path has less action is not checked. `left` points towards the side that noise
    must reach. The search is given up above `limit`, in nodes times states.

    With a `scale` above 0 the rate equation may lead to either side: κ < 0 if it leads to the side of `left`, and noise
    acts backwards. κ is smooth through 0; where it is smaller than `scale` its errors are relative to `scale`.
    """
    if growth < SLOWEST:
        return f"the saddle is almost marginal (eigenvalue {growth:.2g}): a path there takes too long"
    left = left - left @ saddle
    left = left / np.abs(left).max()
    ends = Ending(left, growth, float(left @ equations.noise(saddle, left)), saddle @ equations.q)
    least = 0.0 if equations.q.min() > 0 else IMPOSSIBLE
    for first_time, until in APPROACHES:
        mesh, search = mesh_until(until, 1, first_time), _Search(first_time, least, limit, scale)
        if mesh.n_nodes * len(saddle) > limit:
            return _too_large(mesh.n_nodes, len(saddle), growth)
        problem = MessageProblem(equations, ends, mesh)
        found = _weak(problem, search) if first_time == WEAK else _followed(problem, least)
        if found is not None and search.allows(found):
            path = _settled(problem, found, until, search)
            if first_time == FIRST or not isinstance(path, str):
                return path
    return NO_PATH


class _Search(NamedTuple):
    first_time: float
    least: float  # chance of random answers
    limit: int
    scale: float

    def size(self, found: Found) -> float:
        """What errors of κ are relative to."""
        return max(abs(found.kappa), self.scale)

    def tolerance(self, found: Found, part: float) -> float:
        """Of the messages, which the momentum changes by a number of the order of κ."""
        return part * float(np.clip(abs(found.kappa), SMALLEST, 1))

    def allows(self, found: Found) -> bool:
        """Whether κ, not yet settled, has the right sign."""
        return found.kappa > -SMALL or self.scale > 0

    def end_error(self, problem: MessageProblem, found: Found) -> float:
        """The relative error from linearising the end: the share of the momentum after T, times its nonlinearity.

        It stays large where p does no work, as at an attractor instead of the saddle.
        """
        ends, size = problem.ends, self.size(found)
        off = problem.equations.transposed(found.u[-1] * found.v[-1], ends.left) - ends.growth * ends.left
        rest = np.sqrt(2 * ends.action(found.strength)) / size if size > 0 else np.inf
        return float(rest * np.ptp(off) / (ends.growth * np.ptp(ends.left)))


def _weak(problem: MessageProblem, search: _Search) -> Found | None:
    """The path if noise is weak."""
    found = problem.solve(problem.without_momentum(), search.least, MESSAGE_TOLERANCE)
    if found is None or abs(found.kappa) > STRONG:
        return None
    return problem.solve(found.logarithms, search.least, search.tolerance(found, ON_THE_WAY))


def _settled(problem: MessageProblem, found: Found, until: float, search: _Search) -> LeastActionPath | str:
    """The path with as many and as long times as κ needs."""
    equations, ends, n_states = problem.equations, problem.ends, len(problem.equations.q)
    weak, said = search.first_time == WEAK, np.log(ends.said)[:, None]
    parts, change, longest, end = 1, np.inf, False, search.end_error(problem, found)
    while (short := not longest and end > END) or change > SETTLED:
        lengthen = short and not (weak and change > SETTLED)
        fine = parts if lengthen else 2 * parts
        factor = 1 + np.log(end / END) / (2 * ends.growth * until)  # the error falls with the square of the momentum
        time = until * float(np.clip(factor, *LONGER)) if lengthen else until
        if time * ends.growth > FADED or fine > FINEST:
            return NO_PATH
        mesh = mesh_until(time, fine, search.first_time)
        if mesh.n_nodes * n_states > search.limit:
            return _too_large(mesh.n_nodes, n_states, ends.growth)
        another, enough = MessageProblem(equations, ends, mesh), lengthen and end < NEARLY
        waits = WAITS if lengthen and not weak else WAITS[-1:]
        starts = [moved(found.logarithms, problem.mesh, mesh, wait) for wait in waits]
        if weak:
            faded = np.exp(-ends.growth * np.maximum(mesh.time[::2] - until, 0.0))
            starts = [said + faded[:, None, None] * (starts[0] - said)]
        tolerance = search.tolerance(found, ON_THE_WAY if fine == 1 else MESSAGE_TOLERANCE)
        most = SHORT_SEARCH if enough else LONG_SEARCH // mesh.n_nodes
        better = another.solve(another.nearest(starts, search.least), search.least, tolerance, most)
        if better is None and enough:
            longest = True
            continue
        if better is None or not search.allows(better):
            return NO_PATH
        if not lengthen:
            change = abs(better.kappa - found.kappa) / max(search.size(found), search.size(better))
        found, problem, until, parts, end = better, another, time, fine, search.end_error(another, better)
    if found.kappa <= 0 and search.scale == 0:
        return NO_PATH
    messages, error = np.exp(found.logarithms), max(end**2, change)
    solved = PathEquations(problem.policy(search.least), equations.space)
    return LeastActionPath(found.u, found.v, messages, found.kappa, error, solved, problem.mesh, ends)


def _too_large(n_nodes: int, n_states: int, growth: float) -> str:
    """The reason for giving up a path that takes too much memory."""
    path = f"{n_nodes} times in {n_states} states"
    return f"the path to a saddle with eigenvalue {growth:.2g} needs {path}, more than are kept"


def _followed(problem: MessageProblem, least: float) -> Found | None:
    """The path for the least chance of random answers, if necessary by following it from larger ones."""
    start = problem.without_momentum()
    if (found := problem.solve(start, least, MESSAGE_TOLERANCE)) is not None:
        return found
    for at_random in STARTS:
        if (found := problem.solve(start, at_random, ROUGH)) is not None:
            break
    else:
        return None
    smallest = NEGLIGIBLE * problem.equations.q.min() if least == 0 else IMPOSSIBLE
    logarithm, slope, ratio = np.log(at_random), 0.0, FIRST_RATIO
    while True:
        last = at_random / ratio <= smallest
        following = smallest if last else at_random / ratio
        problem.evaluations = 0
        move = np.log(following) - logarithm
        tried = problem.solve(
            found.logarithms + move * slope, least if last else following, MESSAGE_TOLERANCE if last else ROUGH
        )
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
