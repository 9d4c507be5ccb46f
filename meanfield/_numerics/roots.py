"""All roots of a smooth function on an interval, from its piecewise Chebyshev interpolant."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.polynomial import Chebyshev
from scipy.optimize import brentq

from meanfield._numerics.piecewise import Function, interpolate

OVERLAP = 1e-7
SAME_ROOT = 1e-8
FLAT = 1e-12


class Roots(NamedTuple):
    """The result of `all_roots`."""

    roots: Float[np.ndarray, " roots"]  # in rising order, polished on the function itself
    # Largest estimated error of the interpolant; a pair of roots between which the function stays below it is missed.
    error: float
    closest: tuple[float, float]  # smallest |f| at an extremum above zero (inf if none), and its place
    flat: list[tuple[float, float]]  # stretches with |f| below 1e-12, where every argument is a root up to rounding
    evaluations: int  # number of arguments at which the function was evaluated


def all_roots(
    function: Function,
    breaks: Float[np.ndarray, " breaks"],
    tolerance: float = 1e-10,
    *,
    polish: Function | None = None,
) -> Roots:
    """Every root of `function` between the first and the last of `breaks` that its interpolant resolves.

    The intervals between `breaks` are halved until the last Chebyshev coefficients of degree 16 are below `tolerance`
    times the largest coefficient, or below rounding. The extrema of each interpolant bound stretches on which it is
    monotone: a sign change there is one root, which Newton steps on the function polish. `function` maps arguments (n,)
    to finite values (n,); `polish` is the same function, computed more accurately, for the roots themselves.
    """
    found = interpolate(function, breaks, tolerance, roots_only=True)
    roots, slopes, extrema, flat = [], [], [], []
    for (piece,) in found.pieces:
        if np.abs(piece.coef).max() < FLAT:
            flat.append((float(piece.domain[0]), float(piece.domain[1])))
            continue
        slope = piece.deriv()
        stops = _monotone_stretches(piece, slope)
        values = piece(stops)
        for i in range(len(stops) - 1):
            if np.abs(values[i : i + 2]).max() < FLAT:
                flat.append((float(stops[i]), float(stops[i + 1])))
            elif values[i] * values[i + 1] <= 0 and values[i] != values[i + 1]:
                roots.append(brentq(piece, stops[i], stops[i + 1], xtol=1e-13))
                slopes.append(slope(roots[-1]))
        extrema += list(zip(np.abs(values[1:-1]), stops[1:-1], strict=True))
    polished = np.array(roots)
    for _ in range(3 if roots else 0):
        polished = polished - (polish or function)(polished) / np.array(slopes)
    closest = min(extrema, default=(np.inf, np.nan))
    polished.sort()
    distinct = np.diff(polished, prepend=-np.inf) > SAME_ROOT
    asked = found.evaluations + 3 * len(roots)
    return Roots(polished[distinct], found.error, (float(closest[0]), float(closest[1])), _joined(flat), asked)


def _joined(stretches: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Stretches in rising order, those that touch or overlap taken together."""
    joined: list[tuple[float, float]] = []
    for left, right in sorted(stretches):
        if joined and left <= joined[-1][1] + 1e-6:
            joined[-1] = (joined[-1][0], max(right, joined[-1][1]))
        else:
            joined.append((left, right))
    return joined


def _monotone_stretches(piece: Chebyshev, slope: Chebyshev) -> np.ndarray:
    """The ends of the piece and the extrema of the interpolant in between.

    The piece reaches a little over its ends, so that a root at an end is in one of two neighbours, or in both.
    """
    overlap = OVERLAP * (piece.domain[1] - piece.domain[0])
    left, right = piece.domain + np.array([-overlap, overlap])
    turning = slope.trim(1e-15).roots()
    real = turning[np.abs(turning.imag) < 1e-9 * (right - left)].real if len(turning) else np.empty(0)
    return np.concatenate([[left], np.sort(real[(real > left) & (real < right)]), [right]])
