"""The time for which a diffusion on a line lives.

Exponential fitting makes it a chain of neighbours (Scharfetter and Gummel 1969), of order two in their distance. Where
it goes first is exact for a constant drift and noise between points. Real recursions add positive numbers only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Line = Float[np.ndarray, " points"]

NODES = 16  # on half of the contour: its error is 1e-10 at most


class Lifetime(NamedTuple):
    """A chain of points that starts at the first; rates of its moves and of its end."""

    up: Line  # 0 at the last point
    down: Line  # 0 at the first
    end: Line

    def mean(self) -> float:
        """The mean time; infinite if it is beyond 1e308."""
        total, reached, back, wait = 0.0, 1.0, 0.0, 0.0
        for up, down, end in self._rates():
            ends = end + down * back  # before it is at the next point
            if not up + ends > 0:
                return np.inf
            wait = (1 + down * wait) / (up + ends)
            total += reached * wait
            reached, back = reached * up / (up + ends), ends / (up + ends)
        return total

    def over(self, times: Float[np.ndarray, " times"]) -> Float[np.ndarray, " times"]:
        """The chance that it is over, with an absolute error of 1e-9.

        The Laplace transform is inverted along a parabola (Weideman and Trefethen, Math. Comp. 76, 1341, 2007).
        """
        u = (np.arange(NODES) + 0.5) * 3 / NODES
        scale = np.pi * NODES / 12 / times[:, None]
        s = scale * (1 + 1j * u) ** 2
        total, reached, back, ended = np.zeros_like(s), np.ones_like(s), np.zeros_like(s), np.zeros_like(s)
        for up, down, end in self._rates():
            lost = s + end + down * back
            ended = (end + down * ended) / (up + lost)
            total += reached * ended
            reached, back = reached * up / (up + lost), lost / (up + lost)
        integrand = np.exp(s * times[:, None]) * total / s * scale * (1 + 1j * u)
        return np.clip(6 / NODES / np.pi * integrand.real.sum(1), 0.0, 1.0)

    def _rates(self) -> Iterator[tuple[float, float, float]]:
        return zip(self.up.tolist(), self.down.tolist(), self.end.tolist(), strict=True)


def lifetime_on(points: Line, drift: Line, variance: Line, end: Line) -> Lifetime:
    """From the first point on, between reflecting ends; drift, variance and rate of the end in a unit of time."""
    width = np.diff(points)
    slope = 2 * drift / variance
    climb = (slope[1:] + slope[:-1]) / 2 * width
    cell = (np.append(0.0, width) + np.append(width, 0.0)) / 2
    up = variance[:-1] / 2 / (cell[:-1] * width) * _bernoulli(-climb)
    down = variance[1:] / 2 / (cell[1:] * width) * _bernoulli(climb)
    return Lifetime(np.append(up, 0.0), np.append(0.0, down), end)


def _bernoulli(z: Line) -> Line:
    """z/(exp(z) - 1)."""
    small = np.abs(z) < 1e-8
    safe = np.where(small, 1.0, z)
    with np.errstate(over="ignore"):
        return np.where(small, 1 - z / 2, safe / np.expm1(safe))
