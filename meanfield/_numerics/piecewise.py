"""Piecewise Chebyshev interpolants, as fine as a tolerance asks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.polynomial import Chebyshev
from numpy.polynomial.chebyshev import chebcompanion, chebvander

DEGREE = 16
TAIL = 3
MAX_DEPTH = 20
ROUNDING = 1e-13
TINY = 1e-15  # coefficients of no degree
REAL = 2e-9  # imaginary part, for intervals of length 2

Function = Callable[[np.ndarray], np.ndarray]

_NODES = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
_TO_COEFFICIENTS = np.linalg.inv(chebvander(_NODES, DEGREE)).T


def fitted(
    function: Function, ends: Float[np.ndarray, "intervals two"]
) -> tuple[Float[np.ndarray, "intervals components coefficients"], Float[np.ndarray, "intervals components"]]:
    """Chebyshev coefficients on each interval, and the largest of the last three, which the error hardly exceeds."""
    arguments = ends.mean(1)[:, None] + 0.5 * np.diff(ends, axis=1) * _NODES
    values = np.moveaxis(np.atleast_2d(function(arguments.ravel())).reshape(-1, *arguments.shape), 0, 1)
    coefficients = values @ _TO_COEFFICIENTS
    return coefficients, np.abs(coefficients[..., -TAIL:]).max(-1)


def interpolate(
    function: Function, breaks: Float[np.ndarray, " breaks"], tolerance: float
) -> list[tuple[Chebyshev, ...]]:
    """For each interval in rising order one polynomial for each component.

    The intervals between `breaks` are halved until the last coefficients of degree 16 are below `tolerance` times the
    largest coefficient of the component, or below rounding. `function` maps arguments (n,) to finite values (n,) or
    (components, n).
    """
    intervals = list(itertools.pairwise(breaks))
    done: list[tuple[Chebyshev, ...]] = []
    for depth in range(MAX_DEPTH + 1):
        ends = np.array(intervals)
        coefficients, tails = fitted(function, ends)
        accept = (tails <= np.maximum(tolerance * np.abs(coefficients).max(-1), ROUNDING)).all(1) | (depth == MAX_DEPTH)
        done += [
            tuple(Chebyshev(c, domain=e) for c in components)
            for components, e in zip(coefficients[accept], ends[accept], strict=True)
        ]
        intervals = halves(ends[~accept])
        if not len(intervals):
            break
    return sorted(done, key=lambda piece: piece[0].domain[0])


def halves(ends: Float[np.ndarray, "intervals two"]) -> Float[np.ndarray, "halves two"]:
    """Both halves of each interval."""
    left, right = ends.T
    middle = (left + right) / 2
    return np.stack([left, middle, middle, right], axis=1).reshape(-1, 2)


def real_roots(
    coefficients: Sequence[np.ndarray] | np.ndarray, ends: Float[np.ndarray, "intervals two"], nothing: Any = TINY
) -> list[Float[np.ndarray, " roots"]]:
    """The real roots of each Chebyshev polynomial inside its interval, in rising order.

    The last coefficients are left out where they are at most `nothing`, a number or one for each.
    """
    found = [np.empty(0)] * len(ends)
    degrees = np.zeros(len(ends), int)
    for row, (c, least) in enumerate(zip(coefficients, np.broadcast_to(nothing, len(ends)), strict=True)):
        size = np.abs(c)
        if not 2 * size[0] > size.sum():  # else the first one decides the sign
            degrees[row] = np.flatnonzero(size > least).max(initial=0)
    for n in np.unique(degrees[degrees > 0]).tolist():
        (rows,) = np.nonzero(degrees == n)
        c = np.stack([coefficients[row][: n + 1] for row in rows])
        scale = np.where(np.arange(n) == 0, np.sqrt(2), 1) / 2 if n > 1 else 1.0
        matrices = np.repeat(chebcompanion(np.eye(n + 1)[n])[None], len(rows), axis=0)
        matrices[:, :, -1] -= c[:, :-1] / c[:, -1:] * scale
        for row, roots in zip(rows.tolist(), np.linalg.eigvals(matrices[:, ::-1, ::-1]), strict=True):
            left, right = ends[row].tolist()
            x = left + (right - left) * (np.sort(roots.real[np.abs(roots.imag) < REAL]) + 1) / 2
            found[row] = x[(x > left) & (x < right)]
    return found
