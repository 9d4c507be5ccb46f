"""The messages of a tilted population, whose fixed point is the path of least action (`least_action_path`).

Given the messages g_ab(t), with G = Σ_ab g_ab g_ba,

    du_j/dt = Σ_(Γ(i,a,b) = j) u_i q_a(i) g_ba - ½(G + 1) u_j,   -dv_i/dt = Σ_ab q_a(i) g_ba v_Γ(i,a,b) - ½(G + 1) v_i

are linear, of bounded rates, and conserve Σuv. u goes forward from empty memories, v backward from the saddle, and both
give new messages, g_ab = Σ_i u_i q_a(i) v_Γ(i,a,b). Newton's method with GMRES finds the fixed point in their
logarithms.

At the end T the momentum is s·l, with l the left eigenvector of the saddle's unstable direction and λ its eigenvalue;
later the equations are linearised. The condition l·(x(T) - saddle) = -s lᵀDl/2λ gives the strength s. The remaining
action, s²lᵀDl/4λ, is added to the momentum of all states, so that p·x goes to 0.

The messages change fast at the start, where agents hardly ever say the weak word. Steps are equal in τ, τ = t/LONG +
log(1 + t/FIRST)/GROWTH.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import wrightomega

from meanfield._finite_size import message_kernel as kernel
from meanfield._finite_size.message_newton import message_newton
from meanfield._finite_size.path_equations import PathEquations
from meanfield._numerics.course import Vector, halves

LONG, GROWTH, FIRST = 0.8, 0.5, 1e-8  # steps: the longest, how fast they grow, and of which time they are at first
SHORT_SEARCH = 300  # evaluations
STRONGEST = 1e9  # of momenta

Messages = Float[np.ndarray, "nodes own partner"]


class Mesh(NamedTuple):
    """Times and dt/dτ at nodes and middles, where τ counts the steps."""

    time: Vector
    pace: Vector

    @property
    def n_nodes(self) -> int:
        return (len(self.time) + 1) // 2


def mesh_until(end: float, parts: int, first_time: float = FIRST, longest: float = LONG) -> Mesh:
    """A mesh from 0 to `end`, with each step in as many parts.

    Steps grow from times of the order of `first_time` on, up to `longest`.
    """
    tau = end / longest + np.log1p(end / first_time) / GROWTH
    n_steps = parts * int(np.ceil(tau))
    first = GROWTH / longest * first_time
    # z + log z = known, for z = (t + first_time)·GROWTH/longest
    z = wrightomega(GROWTH * tau * np.arange(2 * n_steps + 1) / (2 * n_steps) + first + np.log(first))
    time = longest / GROWTH * (z - first)
    return Mesh(np.maximum(time, 0.0), tau / n_steps / (1 / longest + 1 / (GROWTH * (time + first_time))))


class Ending(NamedTuple):
    """Where the path ends: the left eigenvector l, 0 at the saddle, its eigenvalue λ, lᵀDl, and the word share.

    With lᵀDl = 0 it ends where l·x = 0, for any l.
    """

    left: Vector
    growth: float
    spread: float
    said: Float[np.ndarray, " words"]

    def strength(self, u: Vector) -> float | None:
        """The strength of the momentum with which u, up to a factor, ends on the linearised path, or None."""

        def beyond(strength: float) -> float:
            exponent = strength * self.left
            x = u * np.exp(exponent - exponent.max())
            return float(self.left @ x / x.sum() + strength * self.spread / (2 * self.growth))

        farthest = 1.0
        while not beyond(-farthest) < 0 < beyond(farthest):
            farthest *= 2
            if farthest > STRONGEST:
                return None
        return float(brentq(beyond, -farthest, farthest, xtol=1e-300, rtol=1e-14))  # pyright: ignore

    def action(self, strength: float) -> float:
        """From there on."""
        return strength**2 * self.spread / (4 * self.growth)


class Found(NamedTuple):
    """Logarithms of messages, their images, the courses u and v, the strength of the end, and exp(-action) in all."""

    logarithms: Messages
    again: Messages
    u: Float[np.ndarray, "nodes states"]
    v: Float[np.ndarray, "nodes states"]
    strength: float
    chance: float

    @property
    def residual(self) -> Messages:
        return self.again - self.logarithms

    @property
    def size(self) -> float:
        return float(np.sqrt(np.mean(self.residual**2)))

    @property
    def kappa(self) -> float:
        """√(2 · action), with the sign of the strength."""
        return float(np.sign(self.strength) * np.sqrt(max(0.0, -2 * np.log(self.chance))))


class MessageProblem:
    """A policy with some random answers, an end, a mesh, and the composition at the start, empty memories if None."""

    def __init__(self, equations: PathEquations, ends: Ending, mesh: Mesh, start: Vector | None = None) -> None:
        self.mesh, self.evaluations = mesh, 0
        self.equations, self.ends = equations, ends
        self.start = np.eye(1, len(equations.q))[0] if start is None else start

    def policy(self, at_random: float) -> np.ndarray:
        """The policy of agents who with a chance `at_random` answer as at the saddle."""
        return (1 - at_random) * self.equations.q + at_random * self.ends.said

    def evaluate(self, logarithms: Messages, q: np.ndarray) -> Found | None:
        """None where messages leave all bounds."""
        self.evaluations += 1
        W, memory, n_kept = self.equations.n_words, self.equations.memory, self.equations.n_kept
        messages = np.exp(halves(logarithms.reshape(len(logarithms), -1))).reshape(-1, W, W)
        u = kernel.forward_course(messages, self.mesh.pace, self.start, q, memory, n_kept)
        if not (np.isfinite(u).all() and u[-1].max() > 0):
            return None
        u /= u[-1].max()
        strength = self.ends.strength(u[-1])
        if strength is None:
            return None
        last = np.exp(strength * self.ends.left + self.ends.action(strength))
        v = kernel.backward_course(messages, self.mesh.pace, last, q, memory)
        u /= u[0] @ v[0]
        again = kernel.messages_of(u, v, q, memory, n_kept)
        if not 0 < again.min() <= again.max() < np.inf:
            return None
        return Found(logarithms, np.log(again), u, v, strength, float(self.start @ v[0]))

    def nearest(self, starts: list[Messages], at_random: float) -> Messages:
        """The start of the smallest residual."""
        found = [self.evaluate(start, self.policy(at_random)) for start in starts]
        return starts[int(np.argmin([np.inf if one is None else one.size for one in found]))]

    def without_momentum(self) -> Messages:
        """Those at the end, for all times."""
        return np.log(np.tile(self.ends.said[:, None], (self.mesh.n_nodes, 1, len(self.ends.said))))

    def solve(self, start: Messages, at_random: float, tolerance: float, most: int = SHORT_SEARCH) -> Found | None:
        """The solution by Newton's method, or None if it does not converge within about so many evaluations."""
        q = self.policy(at_random)
        return message_newton(lambda logarithms: self.evaluate(logarithms, q), start, tolerance, most)


def moved(logarithms: Messages, before: Mesh, after: Mesh, wait: float) -> Float[np.ndarray, "others own partner"]:
    """Messages at the times of a longer mesh: the values at `wait` times the old end, and at the end, last longer."""
    at, extra = wait * before.time[-1], (after.time[-1] - before.time[-1]) * (0.5 if wait < 1 else 1.0)
    time = after.time[::2]
    source = np.where(time < at, time, np.maximum(at, time - extra))
    columns = logarithms.reshape(len(logarithms), -1).T
    there = [np.interp(source, before.time[::2], column) for column in columns]
    return np.transpose(there).reshape(-1, *logarithms.shape[1:])
