"""The messages of a reaction model of few states.

They are the sums g_s of both sides of each channel, and the fields a_s = Σ_i α_s(i) x_i. With ε the encounter rate, s'
the other side and S the moves alone, an agent has the linear equations dv/dt = -Mv and du/dt = Mᵀu,

    M = ε Σ_s [g_s' α_s P_s - a_s' α_s] + S - diag(S1).

uᵀMv is h and once more its part from encounters. So ∫ p·dx - h dt = [p·x] + ∫ ε Σ_m (g_s g_s' - a_s a_s') dt.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import xlogy

from meanfield._large_deviations.exits import Exit
from meanfield._large_deviations.linearised import Ends
from meanfield._large_deviations.message_path import Found, Logarithms, Messages, at_nodes, image_of, message_path
from meanfield._large_deviations.path import Path
from meanfield._numerics.course import halves, remaining


class ReactionProblem:
    """Agents in the states of a face; see `message_path.Problem`."""

    def __init__(self, ends: Ends, start: Any, end: float, n_steps: int, strength: float | None) -> None:
        self._h, self._face, self._ending = ends.hamiltonian, ends.face, ends.ending
        self._start, self._step, self._strength = start[ends.face], end / n_steps, strength
        self.times = np.linspace(0.0, end, n_steps + 1)

    def evaluate(self, logarithms: Logarithms) -> Found | None:
        steps = self._propagators(np.exp(halves(at_nodes(logarithms, len(self.times)))))
        v = np.empty((len(steps) + 1, len(self._start)))
        u = np.empty_like(v)
        v[-1] = np.exp(-np.exp(logarithms[-1]) * self._ending.left)
        for n in range(len(steps) - 1, -1, -1):
            v[n] = steps[n] @ v[n + 1]
        if not 0 < v.min() <= v.max() < np.inf:
            return None
        u[0] = self._start / v[0]
        for n, step in enumerate(steps):
            u[n + 1] = u[n] @ step
        sums = np.einsum("ni,sik,nk->ns", u, self._h.sides, v, optimize=True)
        messages = np.hstack([sums, (u * v) @ self._h.takes_part.T])
        if not 0 < messages.min() <= messages.max() < np.inf:
            return None
        strength = self._strength or self._ending.strength(u[-1] * v[-1])
        return Found(logarithms, image_of(messages, strength, logarithms), u, v)

    def guess(self, x: Float[np.ndarray, "nodes all"]) -> Messages:
        fields = x[:, self._face] @ self._h.takes_part.T
        return np.log(np.hstack([fields, fields]))

    def action(self, found: Found) -> Float[np.ndarray, " nodes"]:
        sums, fields = np.hsplit(np.exp(at_nodes(found.again, len(self.times))), 2)
        met = (sums * self._h.other(sums) - fields * self._h.other(fields)).sum(1)
        rest = remaining(halves(self._h.encounters * met[:, None] / 2)[:, 0], self._step)
        levels = xlogy(found.u * found.v, found.v).sum(1)
        return levels - levels[0] + rest[0] - rest

    def hamiltonian(self, found: Found) -> Float[np.ndarray, " nodes"]:
        return self._h.value(*self.course(found))

    def course(self, found: Found) -> tuple[Float[np.ndarray, "nodes states"], Float[np.ndarray, "nodes states"]]:
        return found.u * found.v, np.log(found.v)

    def _propagators(self, messages: Float[np.ndarray, "halves messages"]) -> Float[np.ndarray, "steps states states"]:
        """v[n] = matrix @ v[n + 1], by Runge-Kutta of order four."""
        sums, fields = (self._h.encounters * self._h.other(part) for part in np.hsplit(messages, 2))
        rates = np.tensordot(sums, self._h.sides, 1) + self._h.alone
        one = np.eye(len(self._start))
        rates -= one * (fields @ self._h.takes_part + self._h.alone.sum(1))[:, None]
        rates *= self._step
        first, middle, last = rates[2::2], rates[1::2], rates[:-2:2]
        two = middle @ (one + first / 2)
        three = middle @ (one + two / 2)
        four = last @ (one + three)
        return one + (first + 2 * (two + three) + four) / 6


def reaction_path(way: Exit, ends: Ends) -> Path | str:
    """The path, or the reason if none is found."""

    def make(start: Any, end: float, n_steps: int, strength: float | None) -> ReactionProblem:
        return ReactionProblem(ends, start, end, n_steps, strength)

    found = message_path(way, make, ends.ending, way.downhill(0.0)[way.face])
    return found if isinstance(found, str) else found.path
