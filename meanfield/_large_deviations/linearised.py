"""Hamilton's equations near the ends of a path, in coordinates of the tangent space."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import solve_continuous_lyapunov

from meanfield._large_deviations.exits import Exit
from meanfield._large_deviations.hamiltonian import Hamiltonian
from meanfield._reactions.modes import tangent_space

Square = Float[np.ndarray, "directions directions"]


class SaddleEnd(NamedTuple):
    """A saddle, its unstable eigenvalue λ, and lᵀDl of the left eigenvector l, in the shape of a composition.

    l is positive where the path comes from, so that it ends with p = -s l.
    """

    saddle: np.ndarray
    growth: float
    left: np.ndarray
    spread: float

    def distance(self, x: np.ndarray) -> float:
        """l·(x - saddle)."""
        return float((self.left * (x - self.saddle)).sum())

    def strength(self, x: np.ndarray) -> float:
        """s with which the linearised path passes x."""
        return 2 * self.growth * self.distance(x) / self.spread

    def rest(self, x: np.ndarray, strength: float) -> float:
        """The action from x on, if the linearised path of this strength passes near."""
        return strength * self.distance(x) - strength**2 * self.spread / (4 * self.growth)


class Ends(NamedTuple):
    """Both ends of a path out of an attractor.

    It leaves the attractor with x = attractor + Cp, C the covariance of its fluctuations, and approaches the saddle
    with p = s·l, l the left eigenvector of the unstable direction.
    """

    face: Bool[np.ndarray, " all"]
    hamiltonian: Hamiltonian
    tangent: Float[np.ndarray, "states directions"]
    attractor: Float[np.ndarray, " states"]  # on the face, as the saddle
    saddle: Float[np.ndarray, " states"]
    jacobian: Square  # at the attractor
    covariance: Square  # C at the attractor
    at_saddle: Square  # the solution of the same equation at the saddle, with one negative eigenvalue
    ending: SaddleEnd  # in the states of the face


def ends_of(way: Exit) -> Ends:
    """The linearised ends, next to which the solution of the rate equation starts and ends."""
    hamiltonian, tangent = Hamiltonian(way.model, way.face), tangent_space(way.model, way.face)[way.face]
    attractor, saddle = way.attractor[way.face], way.saddle[way.face]
    (J, D), (J_s, D_s) = (_linearised(hamiltonian, tangent, x) for x in (attractor, saddle))
    values, vectors = np.linalg.eig(J_s.T)
    leading = int(values.real.argmax())
    left = vectors[:, leading].real
    left *= np.sign(left @ tangent.T @ (way.downhill(0.0)[way.face] - saddle)) / np.abs(left).max()
    ending = SaddleEnd(saddle, float(values[leading].real), tangent @ left, float(left @ D_s @ left))
    return Ends(
        way.face,
        hamiltonian,
        tangent,
        attractor,
        saddle,
        J,
        solve_continuous_lyapunov(J, -D),
        solve_continuous_lyapunov(J_s, -D_s),
        ending,
    )


def _linearised(hamiltonian: Hamiltonian, tangent: np.ndarray, x: np.ndarray) -> tuple[Square, Square]:
    """J and D at x."""
    second = hamiltonian.curvature(x[None], np.zeros((1, len(x))))
    return tangent.T @ second.xp[0].T @ tangent, tangent.T @ second.pp[0] @ tangent
