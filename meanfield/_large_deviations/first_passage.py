"""The time for which a diffusion on a line lives.

Exponential fitting makes it a chain of neighbours (Scharfetter and Gummel 1969), of order two in their distance. Where
it goes first is exact for a constant drift and noise between points. Real recursions add positive numbers only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import comb

from meanfield.toolbox._errors import ConvergenceError

Line = Float[np.ndarray, " points"]

ALIASING = 18.4  # the series gives f(t) + e^-18.4 f(3t) + …, an error of 1e-8
FIRST_TERMS, MOST_TERMS, AVERAGED = 40, 10_240, 12  # of the series; partial sums that Euler's method averages
TOLERANCE = 1e-6


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
        """The chance that it is over, with an absolute error of 1e-6.

        The Laplace transform of a chance is at most 1/s where s has a positive real part. Its inversion there is a
        Fourier series, whose tail Euler's method sums (Abate and Whitt, ORSA J. Comput. 7, 36, 1995); the narrower the
        law of the time, the more terms it takes.

        Raises
        ------
        ConvergenceError
            If 10,000 terms do not suffice.
        """
        before = self._series(times, FIRST_TERMS)
        n_terms = FIRST_TERMS
        while n_terms < MOST_TERMS:
            n_terms *= 4
            chance = self._series(times, n_terms)
            if np.abs(chance - before).max() < TOLERANCE:
                return np.clip(chance, 0.0, 1.0)
            before = chance
        raise ConvergenceError(f"the law of the time is too narrow: {MOST_TERMS} terms do not suffice", best=before)

    def _series(self, times: Float[np.ndarray, " times"], n_terms: int) -> Float[np.ndarray, " times"]:
        k = np.arange(n_terms + AVERAGED)
        s = (ALIASING + 2j * np.pi * k) / (2 * times[:, None])
        total, reached, back, ended = np.zeros_like(s), np.ones_like(s), np.zeros_like(s), np.zeros_like(s)
        for up, down, end in self._rates():
            lost = s + end + down * back
            ended = (end + down * ended) / (up + lost)
            total += reached * ended
            reached, back = reached * up / (up + lost), lost / (up + lost)
        terms = np.where(k == 0, 0.5, 1.0) * (-1.0) ** k * (total / s).real
        sums = np.cumsum(terms, axis=1)[:, -AVERAGED:]
        weights = comb(AVERAGED - 1, np.arange(AVERAGED)) / 2 ** (AVERAGED - 1)
        return np.exp(ALIASING / 2) / times * (sums @ weights)

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
