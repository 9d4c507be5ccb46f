"""All roots of a smooth function on an interval, from its piecewise Chebyshev interpolant."""

from __future__ import annotations

import bisect
import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.polynomial import Chebyshev
from scipy.optimize import brentq

from meanfield._numerics.piecewise import DEGREE, MAX_DEPTH, Function, fitted, halves

UNRESOLVED = 100.0  # error of a piece in units of its last coefficients, where these are still large
STRAIGHT = 2.0  # factor by which slopes may differ about a simple root
STEEP = 64.0  # a polynomial of degree 16 below 1 has slopes up to 32 in the middle of an interval of length 1
MOST_PIECES = 1000  # where rounding is larger than it should be, halving does not end by itself
STEPS = 20  # of Newton's method; two or three are enough where roots are not about to merge
NARROW = 0.1  # a stretch up to which one root, its middle, stands for all in it


class Stretch(NamedTuple):
    """An interval on which the function is zero up to its error, so that its roots can't be counted."""

    left: float
    right: float
    odd: bool | None  # whether the function changes its sign; None at an end of the line
    bound: float  # of |f| between the ends

    @property
    def has_root(self) -> bool:
        """Whether one root stands for all in the stretch."""
        return self.odd is not None and self.right - self.left < NARROW


class Roots(NamedTuple):
    """The result of `all_roots`."""

    roots: Float[np.ndarray, " roots"]  # in rising order
    errors: Float[np.ndarray, " roots"]  # bounds of their errors
    slopes: Float[np.ndarray, " roots"]  # of the function; 0 where a root stands for a stretch
    unresolved: list[Stretch]
    closest: tuple[float, float, float]  # smallest |f| at an extremum (inf if none), its place, error of f there
    evaluations: int  # number of arguments at which the function was evaluated


def all_roots(
    function: Function,
    breaks: Float[np.ndarray, " breaks"],
    tolerance: float = 1e-10,
    *,
    exact: Function | None = None,
    rounding: float = 1e-13,
) -> Roots:
    """Every root of `function` between the first and the last of `breaks`, and the stretches that may hide others.

    The sign of the interpolant is certain where it is larger than its error. Its extrema and the ends of its pieces are
    samples. Two samples of opposite and certain signs with none of uncertain sign between them hold one root, if the
    interpolant is almost straight as long as it is smaller than its error. Pieces on which that does not settle the
    number of roots are halved until they are exact up to rounding; what is not settled then is a stretch. Therefore the
    slopes at roots alternate in sign, except across a stretch.

    `function` maps arguments (n,) to finite values (n,), with errors below `tolerance`; `exact` is the same function
    with errors below `rounding`, for the roots themselves and for those that are about to merge.
    """
    exact = exact or function
    line = _Line(_pieces(function, np.array(list(itertools.pairwise(breaks))), tolerance))
    fits = len(line.pieces)
    for _ in range(MAX_DEPTH):
        coarse = [piece for piece in line.undecided() if piece.accuracy > rounding or not piece.resolved]
        if not coarse or len(line.pieces) > MOST_PIECES:
            break
        pieces = [piece for piece in line.pieces if piece not in coarse]
        rough = [piece for piece in coarse if piece.accuracy > rounding and not piece.resolved]
        fine = [piece for piece in coarse if piece not in rough]
        for look, accuracy, part in ((function, tolerance, rough), (exact, rounding, fine)):
            pieces += _pieces(look, halves(np.array([piece.ends for piece in part])), accuracy) if part else []
        line = _Line(pieces)
        fits += 2 * len(coarse)
    roots, left, right, slopes = np.array(line.simple).reshape(-1, 4).T
    steps, n_steps = np.full(len(roots), np.inf), 0
    while n_steps < STEPS and (np.abs(steps * slopes) > rounding).any():
        steps = exact(roots) / slopes
        roots = np.clip(roots - steps, left, right)
        n_steps += 1
    errors = np.abs(steps) + rounding / np.abs(slopes)
    stretches = line.stretches()
    middles = [((one.left + one.right) / 2, (one.right - one.left) / 2, 0.0) for one in stretches if one.has_root]
    found = sorted([*zip(roots, errors, slopes, strict=True), *middles])
    evaluations = fits * (DEGREE + 1) + n_steps * len(roots)
    return Roots(*np.array(found).reshape(-1, 3).T, stretches, line.closest(), evaluations)


class _Piece:
    """The interpolant on an interval, with its error."""

    def __init__(self, ends: np.ndarray, coefficients: np.ndarray, tail: float, accuracy: float) -> None:
        self.ends = self.left, self.right = ends.tolist()
        self.accuracy = accuracy  # of the function
        self.resolved = tail <= accuracy * max(1.0, np.abs(coefficients).max())  # whether the coefficients fall off
        self.error = max(accuracy, tail if self.resolved else UNRESOLVED * tail)
        self.value = Chebyshev(coefficients, domain=ends)
        self.slope = self.value.deriv()
        turning = self.slope.trim(1e-15).roots()
        real = turning[np.abs(turning.imag) < 1e-9 * (self.right - self.left)].real
        self.extrema = np.sort(real[(real > self.left) & (real < self.right)])


def _pieces(function: Function, ends: np.ndarray, accuracy: float) -> list[_Piece]:
    coefficients, tails = fitted(function, ends)
    return [_Piece(*fit, accuracy) for fit in zip(ends, coefficients[:, 0], tails[:, 0], strict=True)]


class _Line:
    """Pieces as one function, and what it tells about its roots.

    A bracket is a pair of neighbours among the samples of certain sign and the two ends of the line.
    """

    def __init__(self, pieces: list[_Piece]) -> None:
        self.pieces = sorted(pieces, key=lambda piece: piece.left)
        self._starts = [piece.left for piece in self.pieces[1:]]
        rows = [(self.pieces[0].left, np.nan, np.inf, False)]
        for before, piece in zip([None, *self.pieces[:-1]], self.pieces, strict=True):
            x = np.array([piece.left, *piece.extrema, piece.right])
            at_break = before is not None and before.slope(before.right) * piece.slope(piece.left) < 0
            turns = [at_break, *[True] * len(piece.extrema), False]
            rows += zip(x, piece.value(x), [piece.error] * len(x), turns, strict=True)
        rows.append((self.pieces[-1].right, np.nan, np.inf, False))
        self._x, self._f, self._error, self._turns = np.array(rows).T
        self._sure = np.abs(self._f) > self._error
        brackets = list(itertools.pairwise(np.flatnonzero(self._sure | np.isnan(self._f)).tolist()))
        odd = [bracket for bracket in brackets if self._odd(*bracket)]
        found = {bracket: root for bracket in odd if (root := self._simple_root(*bracket))}
        # Simple roots, arguments of certain sign on both sides of them, and slopes
        self.simple = [(root, self._x[i], self._x[j], slope) for (i, j), (root, slope) in found.items()]
        self._undecided = [(i, j) for i, j in brackets if (i, j) not in found and (self._odd(i, j) or j - i > 1)]

    def undecided(self) -> list[_Piece]:
        """The pieces on which more accuracy may tell the number of roots."""
        spans = [(self._x[i], self._x[j]) for i, j in self._undecided]
        return [
            piece for piece in self.pieces if any(piece.left < right and piece.right > left for left, right in spans)
        ]

    def stretches(self) -> list[Stretch]:
        """Where |f| is below twice its error and the number of roots is not known; those that touch taken together."""
        found: list[Stretch] = []
        for i, j in self._undecided:
            hidden = self._x[i + 1 : j] if j - i > 1 else [self._crossing(self._x[i], self._x[j])]
            bound = 2 * max(self._piece(x).error for x in hidden)
            ends = [
                self._crossing(self._x[k], x, np.sign(self._f[k]) * bound) if abs(self._f[k]) > bound else self._x[k]
                for k, x in ((i, hidden[0]), (j, hidden[-1]))
            ]
            odd = None if np.isnan(self._f[i] + self._f[j]) else self._odd(i, j)
            if found and found[-1].right >= ends[0]:
                before = found.pop()
                ends[0], bound = before.left, max(bound, before.bound)
                odd = None if odd is None or before.odd is None else odd != before.odd
            found.append(Stretch(float(ends[0]), float(ends[1]), odd, bound))
        return found

    def closest(self) -> tuple[float, float, float]:
        """The smallest |f| at an extremum of certain sign, its place and its error."""
        extrema = self._sure & (self._turns > 0)
        rows = zip(np.abs(self._f[extrema]), self._x[extrema], self._error[extrema], strict=True)
        return min(rows, default=(np.inf, np.nan, np.nan))

    def _odd(self, i: int, j: int) -> bool:
        return bool(self._f[i] * self._f[j] < 0)

    def _simple_root(self, i: int, j: int) -> tuple[float, float] | None:
        """The root in a bracket of opposite signs, and its slope, if there is no other one for sure."""
        left, right = self._x[i], self._x[j]
        root = self._crossing(left, right)
        piece = self._piece(root)
        slope = piece.slope(root)
        steep = abs(slope) * (piece.right - piece.left) > STEEP * piece.error
        if not piece.resolved or not steep or left == right or self._turns[i + 1 : j].any():
            return None
        around = np.clip(root + piece.error / slope * np.linspace(-1, 1, 9), left, right)
        ratio = np.array([self._piece(x).slope(x) for x in around]) / slope
        return (root, slope) if ratio.min() > 1 / STRAIGHT and ratio.max() < STRAIGHT else None

    def _piece(self, x: float) -> _Piece:
        return self.pieces[bisect.bisect_right(self._starts, x)]

    def _crossing(self, left: float, right: float, level: float = 0.0) -> float:
        """Where f is at a level between two arguments; the nearer of them if it jumps there, at an end of a piece."""

        def above(x: float) -> float:
            return self._piece(x).value(x) - level

        if above(left) * above(right) >= 0:
            return min(left, right, key=lambda x: abs(above(x)))
        return float(brentq(above, left, right, xtol=1e-13))
