"""Piecewise Chebyshev interpolants, as fine as a tolerance asks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.polynomial.chebyshev import chebcompanion, chebder, chebval, chebvander

DEGREE = 16  # of each piece
TAIL = 3  # last coefficients, which tell the error
MAX_DEPTH = 20  # bisections
ROUNDING = 1e-13  # of values, below which no bisection helps
TINY = 1e-15  # coefficients of no degree
REAL = 2e-9  # imaginary part, for intervals of length 2

Function = Callable[[np.ndarray], np.ndarray]


def _nodes(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Chebyshev's nodes on (-1, 1), and what takes values there to the coefficients of their interpolant."""
    nodes = np.cos(np.pi * (np.arange(number) + 0.5) / number)
    return nodes, np.linalg.inv(chebvander(nodes, number - 1)).T


_NODES, _TO_COEFFICIENTS = _nodes(DEGREE + 1)
_PRODUCT_NODES, _TO_PRODUCT_COEFFICIENTS = _nodes(2 * DEGREE)


class Pieces(NamedTuple):
    """Interpolants of one function on neighbouring intervals."""

    ends: Float[np.ndarray, "intervals two"]
    coefficients: Float[np.ndarray, "intervals components coefficients"]


def fitted(
    function: Function, ends: Float[np.ndarray, "intervals two"]
) -> tuple[Float[np.ndarray, "intervals components coefficients"], Float[np.ndarray, "intervals components"]]:
    """Chebyshev coefficients on each interval, and the largest of the last three, which the error hardly exceeds."""
    arguments = ends.mean(1)[:, None] + 0.5 * np.diff(ends, axis=1) * _NODES
    values = np.moveaxis(np.atleast_2d(function(arguments.ravel())).reshape(-1, *arguments.shape), 0, 1)
    coefficients = values @ _TO_COEFFICIENTS
    return coefficients, np.abs(coefficients[..., -TAIL:]).max(-1)


def together(functions: Sequence[Function], numbers: Sequence[int] | np.ndarray) -> Function:
    """One function of many arguments: `numbers` says how many of them, in turn, belong to each of `functions`."""
    cuts = np.cumsum(numbers)[:-1]

    def values(arguments: np.ndarray) -> np.ndarray:
        parts = zip(functions, np.split(arguments, cuts), strict=True)
        return np.concatenate([function(part) for function, part in parts if len(part)], axis=-1)

    return values


def interpolate(functions: Sequence[Function], breaks: Float[np.ndarray, " breaks"], tolerance: float) -> list[Pieces]:
    """The pieces of each function, in rising order; all are evaluated together.

    The intervals between `breaks` are halved until the last coefficients of degree 16 are below `tolerance` times the
    largest coefficient of the component, or below rounding. A function maps arguments (n,) to finite values (n,) or
    (components, n).
    """
    ends = np.tile(list(itertools.pairwise(breaks)), (len(functions), 1))
    whose = np.repeat(np.arange(len(functions)), len(breaks) - 1)
    done: list[tuple[np.ndarray, ...]] = []
    for depth in range(MAX_DEPTH + 1):
        numbers = np.bincount(whose, minlength=len(functions)) * (DEGREE + 1)
        coefficients, tails = fitted(together(functions, numbers), ends)
        accept = (tails <= np.maximum(tolerance * np.abs(coefficients).max(-1), ROUNDING)).all(1) | (depth == MAX_DEPTH)
        done.append((whose[accept], ends[accept], coefficients[accept]))
        ends, whose = halves(ends[~accept]), np.repeat(whose[~accept], 2)
        if not len(ends):
            break
    whose, ends, coefficients = (np.concatenate(parts) for parts in zip(*done, strict=True))
    order = np.lexsort((ends[:, 0], whose))
    cuts = np.searchsorted(whose[order], np.arange(1, len(functions)))
    return [Pieces(ends[rows], coefficients[rows]) for rows in np.split(order, cuts)]


def wronskian(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Coefficients of f'g - fg' on (-1, 1) from the coefficients of f and g, each (…, 17)."""
    (f, g), (df, dg) = (
        [chebval(_PRODUCT_NODES, np.moveaxis(series(c), -1, 0)) for c in (first, second)]
        for series in (lambda c: c, partial(chebder, axis=-1))
    )
    return (df * g - f * dg) @ _TO_PRODUCT_COEFFICIENTS


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
