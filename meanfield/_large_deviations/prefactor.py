"""The prefactor of a mean lifetime, from the curvature of the action along a path.

Near the path the quasi-stationary law of N agents is K exp(-Nφ). With Z the second derivatives of φ,

    dZ/dt = -(h_xx + h_xp Z + Z h_px + Z h_pp Z),   d log K/dt = -tr h_xp - ½ tr(h_pp Z) + h₁,

from Z = C⁻¹ at the attractor. The plane of (δx, δp) = (X, Y), Z = Y X⁻¹, obeys linear equations and is kept as an
orthonormal frame. It holds the direction of the path itself, which errors would leave as the saddle is approached. With
λ the saddle's positive eigenvalue and C_s the solution of its Lyapunov equation, the mean lifetime is

    2π/λ · √|det C / det C_s| · (K at the attractor)/(K at the saddle) · exp(NΔ)

(Bouchet and Reygner, Ann. Henri Poincaré 17, 3499 (2016), for diffusions).
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.interpolate import CubicHermiteSpline

from meanfield._large_deviations.linearised import Ends
from meanfield._large_deviations.path import Path

STEP = 0.5  # the longest, in units of the fastest rate
CUT = 10.0  # how much farther from the ends the integrals start and end to which others are compared


class Prefactor(NamedTuple):
    """The logarithm of the prefactor, in units of time, and its error."""

    logarithm: float
    error: float


def bend(path: Path, ends: Ends) -> float:
    """How far the path is next to the saddle from x = saddle + C_s p, against its distance from the saddle.

    It goes to 0 with this distance unless the path is drawn to the saddle along a stable direction, slower than p
    falls. There φ has no second derivatives (Maier and Stein, SIAM J. Appl. Math. 57, 752 (1997)).
    """
    off, straight = (path.x[-1] - ends.saddle) @ ends.tangent, ends.at_saddle @ (path.p[-1] @ ends.tangent)
    return float(np.linalg.norm(off - straight) / np.linalg.norm(straight))


def prefactor(path: Path, ends: Ends, fastest: float) -> Prefactor:
    """The prefactor; errors are linear in the distance of the ends, and extrapolated to 0."""
    size = np.abs(ends.saddle - ends.attractor).max()
    from_attractor, from_saddle = (np.abs(path.x - end).max(1) / size for end in (ends.attractor, ends.saddle))
    first = int(np.argmax(from_attractor > CUT * from_attractor[0]))
    last = len(path.time) - 1 - int(np.argmax(from_saddle[::-1] > CUT * from_saddle[-1]))
    whole, later = _growth(path, ends, fastest, first)
    corrections = np.array([whole[-1] - later[-1], whole[-1] - whole[last]]) / (CUT - 1)
    growth = float(whole[-1] + corrections.sum())
    spread = np.linalg.slogdet(ends.covariance)[1] - np.linalg.slogdet(ends.at_saddle)[1]
    logarithm = np.log(2 * np.pi / ends.ending.growth) + spread / 2 - growth
    return Prefactor(float(logarithm), float(np.abs(corrections).sum()))


def _growth(path: Path, ends: Ends, fastest: float, first: int) -> Float[np.ndarray, "two nodes"]:
    """log K at the nodes by Runge-Kutta of order four, from the first node and from the node `first` on."""
    both = CubicHermiteSpline(path.time, np.hstack([path.x, path.p]), np.hstack(path.rates(ends.hamiltonian)))
    start = np.linalg.qr(np.vstack([ends.covariance, np.eye(len(ends.covariance))]))[0]
    frames, totals = [start, start], np.zeros((2, len(path.time)))
    for n, (before, after) in enumerate(itertools.pairwise(path.time)):
        totals[:, n + 1] = totals[:, n]
        n_steps = max(1, int(np.ceil((after - before) * fastest / STEP)))
        times = np.linspace(before, after, 2 * n_steps + 1)
        points = _Points(ends, both(times))
        for k in range(n_steps):
            for number in range(2 if n >= first else 1):
                frames[number], gained = points.advance(frames[number], 2 * k, times[2] - times[0])
                totals[number, n + 1] += gained
    return totals


class _Points:
    """The linear equations at nodes and middles."""

    def __init__(self, ends: Ends, both: Float[np.ndarray, "halves both"]) -> None:
        x, p = np.hsplit(both, 2)
        h, tangent = ends.hamiltonian, ends.tangent
        xx, xp, self._noise = (tangent.T @ one @ tangent for one in h.curvature(x, p))
        px = xp.transpose(0, 2, 1)
        self._matrix = np.concatenate([np.concatenate([px, self._noise], 2), np.concatenate([-xx, -xp], 2)], 1)
        velocity, force = h.slopes(x, p)
        self._direction = np.concatenate([velocity @ tangent, -force @ tangent], 1)
        self._gain = h.of_partners(x, p) - px.trace(axis1=1, axis2=2)

    def advance(self, frame: np.ndarray, start: int, step: float) -> tuple[np.ndarray, float]:
        """The frame a step after the point `start`, and what log K gains."""
        frame = _holding(frame, self._direction[start])
        first, middle, last = self._matrix[start : start + 3]
        one = first @ frame
        two = middle @ (frame + step / 2 * one)
        three = middle @ (frame + step / 2 * two)
        four = last @ (frame + step * three)
        stages = (frame, frame + step / 2 * one, frame + step / 2 * two, frame + step * three)
        gains = [self._gained(start + n, stage) for n, stage in zip((0, 1, 1, 2), stages, strict=True)]
        after = np.linalg.qr(frame + step / 6 * (one + 2 * (two + three) + four))[0]
        return after, step / 6 * (gains[0] + 2 * (gains[1] + gains[2]) + gains[3])

    def _gained(self, n: int, frame: np.ndarray) -> float:
        """d log K/dt."""
        X, Y = np.vsplit(frame, 2)
        return float(self._gain[n] - np.trace(np.linalg.solve(X, self._noise[n] @ Y)) / 2)  # of h_pp Z


def _holding(frame: Float[np.ndarray, "both directions"], direction: Float[np.ndarray, " both"]) -> np.ndarray:
    """The frame of the nearest plane that holds a direction."""
    within = frame.T @ direction
    return frame + np.outer(direction - frame @ within, within) / (within @ within)
