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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from meanfield._finite_size.action_rates import policy_slope, work
from meanfield._finite_size.message_newton import ROUGH
from meanfield._finite_size.messages import Ending, Found, Mesh, MessageProblem, Messages, mesh_until, moved
from meanfield._finite_size.path_equations import PathEquations
from meanfield._numerics.course import Vector

APPROACHES, LONGER = (32.0, 16.0, 8.0), 1.5  # first T; the next one
SLOWEST = 5e-4  # saddle, by its eigenvalue: others are as good as marginal
FADED = 16.0  # T, in units of the time in which a momentum fades
FINEST = 64  # parts of a step
SETTLED = 1e-4  # error of κ, relative, and what half the step may change
MESSAGE_TOLERANCE = 1e-5  # of their logarithms
WAITS = (0.2, 0.4, 0.6, 0.8, 1.0)  # where paths may become longer, of T
NEARLY = 1e-2  # error where no longer path is found, as where it waits near an attractor
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
    weights: Vector  # weights of the nodes in integrals over time
    kappa: float  # √(2 · action)
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

    def work(self) -> Vector:
        """p·dx/dt - h at the nodes, which is (p·x)'."""
        return work(self.equations, self.u, self.v, self.messages)

    def slopes(self) -> Float[np.ndarray, "own states"]:
        """∫ ∂h/∂q_a(i) dt, up to a number for each i."""
        weights = self.weights.copy()
        weights[-1] += 1 / self.ends.growth
        total = np.zeros(self.equations.q.T.shape)
        for weight, u, v, g in zip(weights, self.u, self.v, self.messages, strict=True):
            total += weight * policy_slope(self.equations, u, v, g)
        return total


def least_action_path(
    equations: PathEquations, saddle: Vector, left: Vector, growth: float, limit: int
) -> LeastActionPath | str:
    """The path of least action, or the reason if none is found.

    It is stationary; whether another path has less action is not checked. `left` points towards the side that noise
    must reach. The search is given up above `limit`, in nodes times states.
    """
    if growth < SLOWEST:
        return f"the saddle is almost marginal (eigenvalue {growth:.2g}): a path there takes too long"
    left = left - left @ saddle
    left = left / np.abs(left).max()
    ends = Ending(left, growth, float(left @ equations.noise(saddle, left)), saddle @ equations.q)
    least = 0.0 if equations.q.min() > 0 else IMPOSSIBLE
    for until in APPROACHES:
        mesh = mesh_until(until, 1)
        if mesh.n_nodes * len(saddle) > limit:
            return too_large(mesh.n_nodes, len(saddle), growth)
        problem = MessageProblem(equations, ends, mesh)
        found = _followed(problem, least)
        if found is not None and found.kappa > 0:
            return _settled(problem, found, until, least, limit)
    return "no path to the saddle was found"


def _settled(problem: MessageProblem, found: Found, until: float, least: float, limit: int) -> LeastActionPath | str:
    """The path with as many and as long times as κ needs."""
    equations, ends, n_states = problem.equations, problem.ends, len(problem.equations.q)
    parts, change, longest = 1, np.inf, False
    while (lengthen := not longest and found.end_error > SETTLED) or change > SETTLED:
        end, fine = (until * LONGER, parts) if lengthen else (until, 2 * parts)
        if end * ends.growth > FADED or fine > FINEST:
            return "no path to the saddle was found"
        mesh = mesh_until(end, fine)
        if mesh.n_nodes * n_states > limit:
            return too_large(mesh.n_nodes, n_states, ends.growth)
        another, tolerance = MessageProblem(equations, ends, mesh), MESSAGE_TOLERANCE * np.clip(found.kappa**2, 1e-3, 1)
        starts = [moved(found.logarithms, problem.mesh, mesh, wait) for wait in (WAITS if lengthen else WAITS[-1:])]
        better = another.solve(another.nearest(starts, least), least, tolerance, LONG_SEARCH // mesh.n_nodes)
        if better is None and lengthen and found.end_error < NEARLY:
            longest = True
            continue
        if better is None or not better.kappa > 0:
            return "no path to the saddle was found"
        if not lengthen:
            change = abs(better.kappa / found.kappa - 1)
        found, problem, until, parts = better, another, end, fine
    weights = problem.mesh.pace[::2].copy()
    weights[[0, -1]] /= 2
    messages, error = np.exp(found.logarithms), max(found.end_error, change)
    solved = PathEquations(problem.policy(least), equations.space)
    return LeastActionPath(found.u, found.v, messages, weights, found.kappa, error, solved, problem.mesh, ends)


def too_large(n_nodes: int, n_states: int, growth: float) -> str:
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
