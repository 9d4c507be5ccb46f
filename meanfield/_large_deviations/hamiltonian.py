"""The Hamiltonian among the agents in the states of a closed face, with its derivatives at many points at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from meanfield._population.reaction_model import ReactionModel
from meanfield.core._export import exported

flow = exported("meanfield.core._instanton", "flow")
curvatures = exported("meanfield.core._instanton", "curvatures")
met_others = exported("meanfield.core._instanton", "met_others_of_rates")

TOGETHER = 256  # nodes, for which programs are compiled

States = Float[np.ndarray, "nodes states"]
Matrices = Float[np.ndarray, "nodes directions directions"]


class Flow(NamedTuple):
    """H, dx/dt = ∂H/∂p, and -dp/dt = ∂H/∂x."""

    value: Float[np.ndarray, " nodes"]
    by_p: States
    by_x: States


class Curvature(NamedTuple):
    """Second derivatives of H along directions, rows by the first name."""

    xx: Matrices
    xp: Matrices
    pp: Matrices


class Hamiltonian:
    """H at points with arrays x and p of shape (nodes, states of the face).

    Second derivatives are those along the columns of `tangent`, of shape (all states, directions).
    """

    def __init__(
        self, model: ReactionModel, face: Bool[np.ndarray, " all"], tangent: Float[np.ndarray, "all directions"]
    ) -> None:
        self.arrays, self.face, self.tangent = model.game, np.flatnonzero(face), tangent
        self.fastest = model.fastest

    def flow(self, x: States, p: States) -> Flow:
        """H and its first derivatives."""
        value, by_p, by_x = self._at(flow, x, p)
        return Flow(value, by_p[:, self.face], by_x[:, self.face])

    def curvature(self, x: States, p: States) -> Curvature:
        """Second derivatives."""
        return Curvature(*self._at(curvatures, x, p, self.tangent))

    def met_others(self, x: States, p: States) -> Float[np.ndarray, " nodes"]:
        """Gain of H of order 1/N, because agents never meet themselves."""
        (gained,) = self._at(met_others, x, p)
        return gained

    def _at(self, function: Callable, x: States, p: States, *rest: np.ndarray) -> list[np.ndarray]:
        """Results of a function in all states, for some nodes at a time; states outside the face are and stay empty."""
        whole = np.zeros((2, -(-len(x) // TOGETHER) * TOGETHER, self.tangent.shape[0]))
        whole[:, : len(x), self.face] = x, p
        parts = [function(self.arrays, *rest, *nodes) for nodes in np.split(whole, whole.shape[1] // TOGETHER, axis=1)]
        return [np.concatenate(values)[: len(x)] for values in zip(*parts, strict=True)]
