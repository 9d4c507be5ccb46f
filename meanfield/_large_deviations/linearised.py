"""Hamilton's equations near the ends of a path, in coordinates of the tangent space."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import solve_continuous_lyapunov

from meanfield._large_deviations.exits import Exit
from meanfield._large_deviations.hamiltonian import Hamiltonian
from meanfield._large_deviations.path import Path
from meanfield._reactions.modes import tangent_space
from meanfield.core._path_search import Ending

Square = Float[np.ndarray, "directions directions"]


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
    ending: Ending  # in the states of the face


def ends_of(way: Exit) -> Ends:
    """The linearised ends, next to which the solution of the rate equation starts and ends."""
    everywhere = tangent_space(way.model, way.face)
    hamiltonian, tangent = Hamiltonian(way.model, way.face, everywhere), everywhere[way.face]
    attractor, saddle = way.attractor[way.face], way.saddle[way.face]
    (J, D), (J_s, D_s) = (_linearised(hamiltonian, x) for x in (attractor, saddle))
    values, vectors = np.linalg.eig(J_s.T)
    leading = int(values.real.argmax())
    left = vectors[:, leading].real
    left *= np.sign(left @ tangent.T @ (way.downhill(0.0)[way.face] - saddle)) / np.abs(left).max()
    growth, left_of_all = float(values[leading].real), tangent @ left
    ending = Ending(-left_of_all, -float(left_of_all @ saddle), growth, float(left @ D_s @ left) / (2 * growth))
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


def _linearised(hamiltonian: Hamiltonian, x: np.ndarray) -> tuple[Square, Square]:
    """J and D at x."""
    second = hamiltonian.curvature(x[None], np.zeros((1, len(x))))
    return second.xp[0].T, second.pp[0]


def bend(path: Path, ends: Ends) -> float:
    """Distance of the path from x = saddle + C_s p next to the saddle, over its distance from the saddle.

    It goes to 0 with this distance unless the path is drawn to the saddle along a stable direction, slower than p
    falls. There φ has no second derivatives (Maier and Stein, SIAM J. Appl. Math. 57, 752 (1997)).
    """
    off, straight = (path.x[-1] - ends.saddle) @ ends.tangent, ends.at_saddle @ (path.p[-1] @ ends.tangent)
    return float(np.linalg.norm(off - straight) / np.linalg.norm(straight))
