"""All roots of a smooth function on an interval, from its piecewise Chebyshev interpolant."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.polynomial import Chebyshev
from scipy.optimize import brentq

from meanfield._numerics.piecewise import Function, interpolate

OVERLAP = 1e-7
SAME_ROOT = 1e-8
FLAT = 1e-12
NARROW = 1e-3  # a stretch of zeros, up to which it is one root


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

    Where the function is so flat that no slope tells where it changes its sign, as at a pitchfork, the root is the
    middle of the stretch on which it is zero up to rounding, if that is shorter than 1e-3.

    The intervals between `breaks` are halved until the last Chebyshev coefficients of degree 16 are below `tolerance`
    times the largest coefficient, or below rounding. The extrema of each interpolant bound stretches on which it is
    monotone: a sign change there is one root, which Newton steps on the function polish. `function` maps arguments (n,)
    to finite values (n,); `polish` is the same function, computed more accurately, for the roots themselves.
    """
    found = interpolate(function, breaks, tolerance, roots_only=True)
    roots, slopes, extrema, flat, samples = [], [], [], [], []
    exact = polish or function
    for (piece,) in found.pieces:
        if np.abs(piece.coef).max() < FLAT:
            flat.append((float(piece.domain[0]), float(piece.domain[1])))
            continue
        slope = piece.deriv()
        stops = _monotone_stretches(piece, slope)
        values = piece(stops)
        samples += list(zip(stops, values, strict=True))
        for i in range(len(stops) - 1):
            if np.abs(values[i : i + 2]).max() < FLAT:
                flat.append((float(stops[i]), float(stops[i + 1])))
            elif values[i] * values[i + 1] <= 0 and values[i] != values[i + 1]:
                roots.append(brentq(piece, stops[i], stops[i + 1], xtol=1e-13))
                slopes.append((slope(roots[-1]), stops[i], stops[i + 1]))
        extrema += list(zip(np.abs(values[1:-1]), stops[1:-1], strict=True))
    polished = np.array(roots)
    for _ in range(3 if roots else 0):
        steepness, left, right = np.transpose(slopes)
        reach = right - left  # a slope of rounding errors would throw the root anywhere
        polished = np.clip(polished - exact(polished) / steepness, left - reach, right + reach)
    closest = min(extrema, default=(np.inf, np.nan))
    polished.sort()
    distinct = polished[np.diff(polished, prepend=-np.inf) > SAME_ROOT]
    whole, stretches = _completed(distinct, samples, max(FLAT, found.error), _joined(flat), exact)
    asked = found.evaluations + 3 * len(roots)
    return Roots(whole, found.error, (float(closest[0]), float(closest[1])), stretches, asked)


def _completed(
    roots: np.ndarray,
    samples: list[tuple[float, float]],
    noise: float,
    flat: list[tuple[float, float]],
    function: Function,
) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """The roots with those that hide in noise, without those that it feigns at the ends, and the stretches left.

    Between two samples of opposite signs above the noise there is an odd number of roots.
    """
    sure = sorted((x, value) for x, value in samples if abs(value) > noise)
    if not sure:
        return roots, flat
    # Beyond the last sample above the noise no sign is known
    kept = [float(root) for root in roots if sure[0][0] <= root <= sure[-1][0]]
    for (left, before), (right, after) in itertools.pairwise(sure):
        inside = [root for root in kept if left <= root <= right]
        if before * after > 0 or len(inside) % 2:
            continue
        hidden = [stretch for stretch in flat if left <= stretch[0] and stretch[1] <= right]
        if not hidden and inside:
            hidden = [min(itertools.pairwise(inside), key=lambda pair: pair[1] - pair[0])]
        hidden = hidden or [_sign_change(function, left, right)]
        flat = [stretch for stretch in flat if stretch not in hidden]
        if len(hidden) == 1 and hidden[0][1] - hidden[0][0] < NARROW:
            kept.append(sum(hidden[0]) / 2)
        else:
            flat += hidden
    return np.array(sorted(kept)), sorted(flat)


def _sign_change(function: Function, left: float, right: float) -> tuple[float, float]:
    """The stretch around a sign change on which the function is zero up to rounding."""

    def value(x: float) -> float:
        return float(function(np.array([x]))[0])

    sign = np.sign(value(left))
    if min(sign * value(left), -sign * value(right)) <= FLAT:
        return left, right
    first, last = (
        brentq(lambda x, level=level: sign * value(x) - level, left, right, xtol=1e-12) for level in (FLAT, -FLAT)
    )
    return float(first), float(last)


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
