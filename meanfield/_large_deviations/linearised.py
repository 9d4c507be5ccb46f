"""Hamilton's equations near the ends of a path, in coordinates of the tangent space."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import solve_continuous_lyapunov

from meanfield._large_deviations.exits import Exit, Extinction
from meanfield._large_deviations.extinction import AbsorbingEnd
from meanfield._large_deviations.hamiltonian import Hamiltonian
from meanfield._large_deviations.path import Path
from meanfield._reactions.modes import tangent_space
from meanfield.core._path_search import Ending

Square = Float[np.ndarray, "directions directions"]


class Ends(NamedTuple):
    """Both ends of a path out of an attractor.

    It leaves the attractor with x = attractor + Cp, C the covariance of its fluctuations, and approaches its end with
    p = base + s·l, x = saddle + s·ξ. At a saddle l is the left eigenvector of the unstable direction and ξ = Cl with C
    at the saddle.
    """

    face: Bool[np.ndarray, " all"]
    hamiltonian: Hamiltonian
    tangent: Float[np.ndarray, "states directions"]
    attractor: Float[np.ndarray, " states"]  # on the face, as is the saddle
    saddle: Float[np.ndarray, " states"]
    jacobian: Square  # at the attractor
    covariance: Square  # C at the attractor
    ending: Ending  # in the states of the face
    along: Float[np.ndarray, " states"]  # ξ
    at_saddle: Square | None  # C at a saddle, with one negative eigenvalue
    weight: float  # 1/c of an extinction

    def strengths(self, p: Float[np.ndarray, "nodes states"]) -> Float[np.ndarray, " nodes"]:
        """s of these momenta."""
        left = self.tangent @ (self.tangent.T @ self.ending.left)
        return (p - self.ending.base) @ left / (left @ left)


def ends_of(way: Exit | Extinction, absorbing: AbsorbingEnd | None = None) -> Ends:
    """The linearised ends, next to which the solution of the rate equation starts and ends."""
    everywhere = tangent_space(way.model, way.face)
    hamiltonian, tangent = Hamiltonian(way.model, way.face, everywhere), everywhere[way.face]
    attractor, saddle = way.attractor[way.face], way.saddle[way.face]
    J, D = _linearised(hamiltonian, attractor)
    ends = way.face, hamiltonian, tangent, attractor, saddle, J, solve_continuous_lyapunov(J, -D)
    if absorbing:
        left, base = absorbing.ending.left, np.asarray(absorbing.ending.base)
        ending = absorbing.ending._replace(left=left[way.face], base=base[way.face])
        return Ends(*ends, ending, absorbing.along[way.face], None, absorbing.weight)
    J_s, D_s = _linearised(hamiltonian, saddle)
    values, vectors = np.linalg.eig(J_s.T)
    leading = int(values.real.argmax())
    left = vectors[:, leading].real
    left *= np.sign(left @ tangent.T @ (way.downhill(0.0)[way.face] - saddle)) / np.abs(left).max()
    growth, left_of_all = float(values[leading].real), tangent @ left
    width = float(left @ D_s @ left) / (2 * growth)
    ending = Ending(-left_of_all, -float(left_of_all @ saddle), growth, width, np.zeros_like(saddle))
    at_saddle = solve_continuous_lyapunov(J_s, -D_s)
    return Ends(*ends, ending, -tangent @ at_saddle @ left, at_saddle, np.nan)


def _linearised(hamiltonian: Hamiltonian, x: np.ndarray) -> tuple[Square, Square]:
    """J and D at x."""
    second = hamiltonian.curvature(x[None], np.zeros((1, len(x))))
    return second.xp[0].T, second.pp[0]


def bend(path: Path, ends: Ends) -> float:
    """Distance of the path from x = saddle + C_s p next to the saddle, over its distance from the saddle.

    It goes to 0 with this distance unless the path is drawn to the saddle along a stable direction, slower than p
    falls. There φ has no second derivatives (Maier and Stein, SIAM J. Appl. Math. 57, 752 (1997)).
    """
    off, straight = path.x[-1] - ends.saddle, ends.strengths(path.p[-1:]) * ends.along
    return float(np.linalg.norm(off - straight) / np.linalg.norm(straight))
