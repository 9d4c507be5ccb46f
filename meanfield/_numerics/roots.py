"""All roots of a smooth function on an interval, from its piecewise Chebyshev interpolant."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.polynomial.chebyshev import chebder, chebval
from scipy.optimize import brentq

from meanfield._numerics.piecewise import DEGREE, MAX_DEPTH, Function, fitted, halves, real_roots, together

UNRESOLVED = 100.0  # error of a piece in units of its last coefficients, where these are still large
STRAIGHT = 2.0  # factor by which slopes may differ about a simple root
STEEP = 64.0  # a polynomial of degree 16 below 1 has slopes up to 32 in the middle of an interval of length 1
MOST_PIECES = 1000  # where rounding is larger than it should be, halving does not end by itself
SMALL = 1e-3  # coefficient that is negligible for an error of 1
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
    number of roots are halved until they are exact up to rounding; pieces not settled then are stretches. Therefore the
    slopes at roots alternate in sign, except across a stretch.

    `function` maps arguments (n,) to finite values (n,), with errors below `tolerance`; `exact` is the same function
    with errors below `rounding`, for the roots themselves and for those that are about to merge.
    """
    return roots_of_each([function], [breaks], tolerance, exact=[exact or function], rounding=rounding)[0]


def roots_of_each(
    functions: Sequence[Function],
    breaks: Sequence[np.ndarray],
    tolerance: float,
    *,
    exact: Sequence[Function],
    rounding: float,
) -> list[Roots]:
    """`all_roots` of each function; they are interpolated together."""
    ends = [np.array(list(itertools.pairwise(each))) for each in breaks]
    pieces = _fitted(functions, ends, tolerance)
    rows = zip(functions, exact, pieces, strict=True)
    return [_all_roots(look, careful, each, tolerance, rounding) for look, careful, each in rows]


def _all_roots(function: Function, exact: Function, pieces: _Pieces, tolerance: float, rounding: float) -> Roots:
    line = _Line([pieces])
    fits = len(pieces.ends)
    for _ in range(MAX_DEPTH):
        rough = line.pieces.accuracy > rounding
        coarse = line.undecided() & (rough | ~line.resolved)
        if not coarse.any() or len(line.pieces.ends) > MOST_PIECES:
            break
        parts = [line.pieces.of(~coarse)]
        for look, accuracy, part in (
            (function, tolerance, coarse & rough & ~line.resolved),
            (exact, rounding, coarse & ~(rough & ~line.resolved)),
        ):
            parts += _fitted([look], [halves(line.pieces.ends[part])], accuracy) if part.any() else []
        line = _Line(parts)
        fits += 2 * int(coarse.sum())
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


class _Pieces(NamedTuple):
    """Interpolants on intervals, one a row, and how much the function and they may err."""

    ends: Float[np.ndarray, "pieces two"]
    coefficients: Float[np.ndarray, "pieces coefficients"]
    slopes: Float[np.ndarray, "pieces coefficients-1"]  # of the derivatives
    turning: np.ndarray  # where each turns: arrays of unequal length
    tails: Float[np.ndarray, " pieces"]
    accuracy: Float[np.ndarray, " pieces"]  # of the function

    def of(self, rows: Any) -> _Pieces:
        return _Pieces(*(column[rows] for column in self))


def _fitted(functions: Sequence[Function], ends: Sequence[np.ndarray], accuracy: float) -> list[_Pieces]:
    numbers, every = np.array([len(each) for each in ends]), np.concatenate(ends)
    coefficients, tails = (column[:, 0] for column in fitted(together(functions, numbers * (DEGREE + 1)), every))
    per_length = 2 / np.diff(every, axis=1)
    slopes = chebder(coefficients, axis=1) * per_length
    # Coefficients so small change the interpolant by far less than its error
    turning = np.fromiter(real_roots(slopes, every, SMALL * accuracy * per_length[:, 0]), object)
    whole = _Pieces(every, coefficients, slopes, turning, tails, np.full(len(every), accuracy))
    return [whole.of(rows) for rows in np.split(np.arange(len(every)), np.cumsum(numbers)[:-1])]


class _Line:
    """Pieces as one function, and what it tells about its roots.

    A bracket is a pair of neighbours among the samples of certain sign and the two ends of the line.
    """

    def __init__(self, parts: list[_Pieces]) -> None:
        whole = _Pieces(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        self.pieces = pieces = whole.of(np.argsort(whole.ends[:, 0]))
        left, right = pieces.ends.T
        self._starts, self._ends, self._coefficients = (
            column.tolist() for column in (left[1:], pieces.ends, pieces.coefficients)
        )
        # Whether the coefficients fall off
        self.resolved = pieces.tails <= pieces.accuracy * np.maximum(1.0, np.abs(pieces.coefficients).max(1))
        errors = np.maximum(pieces.accuracy, np.where(self.resolved, 1.0, UNRESOLVED) * pieces.tails)
        self._errors = errors
        extrema = pieces.turning
        x = [[a, *inner, b] for (a, b), inner in zip(pieces.ends.tolist(), extrema, strict=True)]
        number = np.repeat(np.arange(len(x)), [len(inside) for inside in x])
        at = np.concatenate(x)
        every = np.arange(len(x))
        flat = SMALL * pieces.accuracy * 2 / (right - left)
        at_breaks = self.slope(every[:-1], right[:-1]) * self.slope(every[1:], left[1:]) < flat[:-1] * flat[1:]
        turns = [[turn, *[True] * len(inner), False] for turn, inner in zip([False, *at_breaks], extrema, strict=True)]
        self._x = np.array([left[0], *at, right[-1]])
        self._f = np.array([np.nan, *self.value(number, at), np.nan])
        self._error = np.array([np.inf, *errors[number], np.inf])
        self._turns = np.array([False, *itertools.chain(*turns), False])
        self._sure = np.abs(self._f) > self._error
        brackets = list(itertools.pairwise(np.flatnonzero(self._sure | np.isnan(self._f)).tolist()))
        odd = [bracket for bracket in brackets if self._odd(*bracket)]
        found = {bracket: root for bracket in odd if (root := self._simple_root(*bracket))}
        # Simple roots, arguments of certain sign on both sides of them, and slopes
        self.simple = [(root, self._x[i], self._x[j], slope) for (i, j), (root, slope) in found.items()]
        self._undecided = [(i, j) for i, j in brackets if (i, j) not in found and (self._odd(i, j) or j - i > 1)]

    def value(self, number: Any, x: Any) -> Any:
        """The interpolants of these pieces at x."""
        return self._at(self.pieces.coefficients, number, x)

    def slope(self, number: Any, x: Any) -> Any:
        """Their derivatives."""
        return self._at(self.pieces.slopes, number, x)

    def _at(self, coefficients: np.ndarray, number: Any, x: Any) -> Any:
        left, right = self.pieces.ends[number].T
        return chebval((2 * x - left - right) / (right - left), coefficients[number].T, tensor=False)

    def undecided(self) -> np.ndarray:
        """Whether more accuracy on a piece may tell the number of roots."""
        spans = np.array([(self._x[i], self._x[j]) for i, j in self._undecided]).reshape(-1, 1, 2)
        left, right = self.pieces.ends.T
        return ((left < spans[..., 1]) & (right > spans[..., 0])).any(0)

    def stretches(self) -> list[Stretch]:
        """Where |f| is below twice its error and the number of roots is not known; those that touch taken together."""
        found: list[Stretch] = []
        for i, j in self._undecided:
            hidden = self._x[i + 1 : j] if j - i > 1 else [self._crossing(self._x[i], self._x[j])]
            bound = 2 * max(self._errors[self._piece(x)] for x in hidden)
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
        extrema = self._sure & self._turns
        rows = zip(np.abs(self._f[extrema]), self._x[extrema], self._error[extrema], strict=True)
        return min(rows, default=(np.inf, np.nan, np.nan))

    def _odd(self, i: int, j: int) -> bool:
        return bool(self._f[i] * self._f[j] < 0)

    def _simple_root(self, i: int, j: int) -> tuple[float, float] | None:
        """The root in a bracket of opposite signs, and its slope, if there is no other one for sure."""
        left, right = self._x[i], self._x[j]
        root = self._crossing(left, right)
        piece = self._piece(root)
        slope, error, length = self.slope(piece, root), self._errors[piece], np.diff(self.pieces.ends[piece]).item()
        steep = abs(slope) * length > STEEP * error
        if not self.resolved[piece] or not steep or left == right or self._turns[i + 1 : j].any():
            return None
        around = np.clip(root + error / slope * np.linspace(-1, 1, 9), left, right)
        ratio = self.slope(np.array([self._piece(x) for x in around]), around) / slope
        return (root, slope) if ratio.min() > 1 / STRAIGHT and ratio.max() < STRAIGHT else None

    def _piece(self, x: float) -> int:
        return bisect.bisect_right(self._starts, x)

    def _crossing(self, left: float, right: float, level: float = 0.0) -> float:
        """Where f is at a level between two arguments; the nearer of them if it jumps there, at an end of a piece."""

        def above(x: float) -> float:
            piece = self._piece(x)
            a, b = self._ends[piece]
            t, coefficients = (2 * x - a - b) / (b - a), self._coefficients[piece]
            one = two = 0.0  # Clenshaw's sum, here ten times faster than chebval
            for c in coefficients[:0:-1]:
                one, two = c + 2 * t * one - two, one
            return coefficients[0] + t * one - two - level

        if above(left) * above(right) >= 0:
            return min(left, right, key=lambda x: abs(above(x)))
        return float(brentq(above, left, right, xtol=1e-13))
