"""Hamilton's equations among the agents in the states of a closed face, and their solutions near the ends of a path."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import solve_continuous_lyapunov

from meanfield._large_deviations.exits import Path, Way
from meanfield._large_deviations.extinction import AbsorbingEnd
from meanfield._population.reaction_model import ReactionModel
from meanfield._reactions.modes import tangent_space
from meanfield.core._export import exported
from meanfield.core._path_search import Ending

flow = exported("meanfield.core._instanton", "flow")
curvatures = exported("meanfield.core._instanton", "curvatures")
met_others = exported("meanfield.core._instanton", "met_others_of_rates")

TOGETHER = 256  # nodes, for which programs are compiled

Face = Float[np.ndarray, " states"]
States = Float[np.ndarray, "nodes states"]
Square = Float[np.ndarray, "directions directions"]
Matrices = Float[np.ndarray, "nodes directions directions"]


class Flow(NamedTuple):
    """H, dx/dt = ∂H/∂p, and -dp/dt = ∂H/∂x."""

    value: Float[np.ndarray, " nodes"]
    by_p: States
    by_x: States


class Curvature(NamedTuple):
    """Second derivatives of H along directions; rows belong to the first letter of the name."""

    xx: Matrices
    xp: Matrices
    pp: Matrices


class Hamiltonian:
    """H at points with arrays x and p of shape (nodes, states of the face).

    Second derivatives are those along the columns of `tangent`, of shape (all states, directions).
    """

    def __init__(self, model: ReactionModel, face: Bool[np.ndarray, " all"], tangent: np.ndarray) -> None:
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
        return self._at(met_others, x, p)[0]

    def _at(self, function: Callable, x: States, p: States, *rest: np.ndarray) -> list[np.ndarray]:
        """Results of a function in all states, for some nodes at a time; states outside the face are and stay empty."""
        whole = np.zeros((2, -(-len(x) // TOGETHER) * TOGETHER, self.tangent.shape[0]))
        whole[:, : len(x), self.face] = x, p
        parts = [function(self.arrays, *rest, *nodes) for nodes in np.split(whole, whole.shape[1] // TOGETHER, axis=1)]
        return [np.concatenate(values)[: len(x)] for values in zip(*parts, strict=True)]


class Ends(NamedTuple):
    """Both ends of a path out of an attractor.

    It leaves the attractor with x = attractor + Cp, C the covariance of its fluctuations, and approaches its end with
    p = base + s·l, x = saddle + s·ξ. At a saddle l is the left eigenvector of the unstable direction and ξ = Cl with C
    at the saddle.
    """

    hamiltonian: Hamiltonian
    tangent: Float[np.ndarray, "states directions"]
    attractor: Face
    saddle: Face
    jacobian: Square  # at the attractor
    covariance: Square  # C at the attractor
    ending: Ending  # in the states of the face
    along: Face  # ξ
    at_saddle: Square | None  # C at a saddle, with one negative eigenvalue
    weight: float  # l·ξ - l·Σl of an extinction

    def strengths(self, p: States) -> Float[np.ndarray, " nodes"]:
        """s of these momenta."""
        left = self.tangent @ (self.tangent.T @ self.ending.left)
        return (p - self.ending.base) @ left / (left @ left)

    def bend(self, path: Path) -> float:
        """Distance of the path from x = saddle + C_s p next to the saddle, over its distance from the saddle.

        It goes to 0 with this distance unless the path is drawn to the saddle along a stable direction, slower than p
        falls. There φ has no second derivatives (Maier and Stein, SIAM J. Appl. Math. 57, 752 (1997)).
        """
        off, straight = path.x[-1] - self.saddle, self.strengths(path.p[-1:]) * self.along
        return float(np.linalg.norm(off - straight) / np.linalg.norm(straight))


def ends_of(way: Way, absorbing: AbsorbingEnd | None = None) -> Ends:
    """The linearised ends, next to which the solution of the rate equation starts and ends."""
    everywhere = tangent_space(way.model, way.face)
    hamiltonian, tangent = Hamiltonian(way.model, way.face, everywhere), everywhere[way.face]
    attractor, saddle = way.attractor[way.face], way.saddle[way.face]

    def linear(x: Face) -> tuple[Square, Square, Square]:
        """J, D and the covariance at x."""
        second = hamiltonian.curvature(x[None], np.zeros((1, len(x))))
        J, D = second.xp[0].T, second.pp[0]
        return J, D, solve_continuous_lyapunov(J, -D)

    J, _, covariance = linear(attractor)
    ends = hamiltonian, tangent, attractor, saddle, J, covariance
    if absorbing:
        left, base = absorbing.ending.left, np.asarray(absorbing.ending.base)
        ending = absorbing.ending._replace(left=left[way.face], base=base[way.face])
        return Ends(*ends, ending, absorbing.along[way.face], None, absorbing.weight)
    J_s, D_s, at_saddle = linear(saddle)
    values, vectors = np.linalg.eig(J_s.T)
    leading = int(values.real.argmax())
    left = vectors[:, leading].real
    left *= np.sign(left @ tangent.T @ (way.downhill(0.0)[way.face] - saddle)) / np.abs(left).max()
    growth, left_of_all = float(values[leading].real), tangent @ left
    width = float(left @ D_s @ left) / (2 * growth)
    ending = Ending(-left_of_all, -float(left_of_all @ saddle), growth, width, np.zeros_like(saddle))
    return Ends(*ends, ending, -tangent @ at_saddle @ left, at_saddle, np.nan)
