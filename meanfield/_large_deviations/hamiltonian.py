"""The Hamiltonian of a reaction model, whose equations its likeliest fluctuations obey, with its derivatives.

Side s of channel m is that of the initiators or of the responders. With s' the other side, α_s(i) the chance that an
agent takes part and P_s(i, k) its moves,

    g_s(x, p) = Σ_ik x_i α_s(i) P_s(i, k) exp(p_k - p_i),
    h(x, p) = ε Σ_m [g_s g_s' - (α_s·x)(α_s'·x)] + Σ_ik x_i S_ik [exp(p_k - p_i) - 1].

N·h is the rate at which the mean of exp(N p·x) grows among many agents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from meanfield._population.reaction_model import ReactionModel

States = Float[np.ndarray, "nodes states"]
Matrices = Float[np.ndarray, "nodes states states"]
Sides = Float[np.ndarray, "nodes sides states"]


class _Tilted(NamedTuple):
    """Sides and moves at points (x, p)."""

    values: Sides  # dg_s/dx_i
    change: Sides  # dg_s/dp_k
    sums: Float[np.ndarray, "nodes sides"]  # g_s of the other side
    rates: Matrices  # of moves i → k of an agent


class Curvature(NamedTuple):
    """Second derivatives of h, rows by the first name."""

    xx: Matrices
    xp: Matrices
    pp: Matrices


class Hamiltonian:
    """h of the agents in the states of a closed face, at points with arrays x and p of shape (nodes, states)."""

    def __init__(self, model: ReactionModel, face: Bool[np.ndarray, " all"]) -> None:
        on = np.ix_(face, face)
        meets = [m for m in range(len(model.alpha)) if model.alpha[m, face].any() and model.beta[m, face].any()]
        parts = [(model.alpha[m, face], model.first[m]) for m in meets]
        parts += [(model.beta[m, face], model.second[m]) for m in meets]
        size = int(face.sum())
        self.sides = np.array([own[:, None] * moves.toarray()[on] for own, moves in parts]).reshape(-1, size, size)
        self.alone = model.spontaneous.toarray()[on]
        self.encounters = model.encounter_rate
        self.takes_part = self.sides.sum(2)

    def value(self, x: States, p: States) -> Float[np.ndarray, " nodes"]:
        """h."""
        tilted, silent = self._tilted(x, p), x @ self.takes_part.T
        met = (tilted.values * x[:, None]).sum(2) * tilted.sums - silent * self.other(silent)
        return self.encounters * met.sum(1) / 2 + (x * self._alone_values(p)).sum(1)

    def slopes(self, x: States, p: States) -> tuple[States, States]:
        """dh/dp, which is dx/dt, and dh/dx, which is -dp/dt."""
        tilted, silent = self._tilted(x, p), x @ self.takes_part.T
        flow = x[:, :, None] * tilted.rates
        still = self.encounters * self.other(silent) @ self.takes_part + self.alone.sum(1)
        return flow.sum(1) - flow.sum(2), tilted.rates.sum(2) - still

    def curvature(self, x: States, p: States) -> Curvature:
        """Second derivatives."""
        tilted = self._tilted(x, p)
        flow, one = x[:, :, None] * tilted.rates, np.eye(x.shape[1])
        through = one * (flow.sum(1) + flow.sum(2))[:, None] - flow - flow.transpose(0, 2, 1)
        values, change = tilted.values, tilted.change
        still = self.takes_part.T @ self.other(self.takes_part, 0)
        return Curvature(
            self.encounters * (self._joint(values, values) - still),
            tilted.rates - one * tilted.rates.sum(2)[:, None] + self.encounters * self._joint(values, change),
            through + self.encounters * self._joint(change, change),
        )

    def _tilted(self, x: States, p: States) -> _Tilted:
        tilt = np.exp(p[:, None, :] - p[:, :, None])
        moves = self.sides * tilt[:, None]
        values = moves.sum(3)
        flow = x[:, None, :, None] * moves
        sums = self.other((values * x[:, None]).sum(2))
        rates = self.encounters * (sums[:, :, None, None] * moves).sum(1) + self.alone * tilt
        return _Tilted(values, flow.sum(2) - flow.sum(3), sums, rates)

    def _alone_values(self, p: States) -> States:
        return (self.alone * (np.exp(p[:, None, :] - p[:, :, None]) - 1)).sum(2)

    def _joint(self, one: Sides, two: Sides) -> Matrices:
        return one.transpose(0, 2, 1) @ self.other(two)

    def other(self, sides: np.ndarray, axis: int = 1) -> np.ndarray:
        """The same of the other side of each channel."""
        return np.roll(sides, sides.shape[axis] // 2, axis)
