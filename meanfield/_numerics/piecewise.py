"""Piecewise Chebyshev interpolants, as fine as a tolerance asks."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.polynomial import Chebyshev

DEGREE = 16
TAIL = 3
MAX_DEPTH = 20
ROUNDING = 1e-13
AWAY = 100.0

Function = Callable[[np.ndarray], np.ndarray]


class Interpolant(NamedTuple):
    """The result of `interpolate`."""

    pieces: list[tuple[Chebyshev, ...]]  # for each interval, not in order, one polynomial for each component
    evaluations: int  # number of arguments at which the function was evaluated
    error: float  # largest estimated error; with `roots_only` where there may be roots


def interpolate(
    function: Function, breaks: Float[np.ndarray, " breaks"], tolerance: float, *, roots_only: bool = False
) -> Interpolant:
    """Halve the intervals between `breaks` until the last coefficients of degree 16 are small on each.

    Small is below `tolerance` times the largest coefficient of the component, or below rounding. `function` maps
    arguments (n,) to finite values (n,) or (components, n). With `roots_only` only roots of a single component matter:
    no smaller error is needed where it stays away from zero by 100 times its estimated error.
    """
    nodes = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    to_coefficients = np.linalg.inv(np.polynomial.chebyshev.chebvander(nodes, DEGREE))
    intervals = list(itertools.pairwise(breaks))
    between = np.polynomial.chebyshev.chebvander(np.linspace(-1, 1, 4 * DEGREE + 1), DEGREE)
    done, evaluations, error = [], 0, 0.0
    for depth in range(MAX_DEPTH + 1):
        ends = np.array(intervals)
        arguments = ends.mean(1)[:, None] + 0.5 * np.diff(ends, axis=1) * nodes
        values = np.moveaxis(np.atleast_2d(function(arguments.ravel())).reshape(-1, *arguments.shape), 0, 1)
        evaluations += arguments.size
        coefficients = values @ to_coefficients.T
        tails = np.abs(coefficients[..., -TAIL:]).max(-1)
        resolved = (tails <= np.maximum(tolerance * np.abs(coefficients).max(-1), ROUNDING)).all(1)
        accept = resolved | (depth == MAX_DEPTH)
        if roots_only:
            away = (np.abs(coefficients @ between.T).min(-1) > AWAY * tails).all(1)
            error = max(error, tails[accept & ~away].max(initial=0.0))
            accept |= away
        done += [
            tuple(Chebyshev(c, domain=e) for c in components)
            for components, e in zip(coefficients[accept], ends[accept], strict=True)
        ]
        if not roots_only:
            error = max(error, tails[accept].max(initial=0.0))
        halves = [(a, (a + b) / 2, b) for a, b in ends[~accept]]
        intervals = [pair for half in halves for pair in itertools.pairwise(half)]
        if not intervals:
            break
    return Interpolant(done, evaluations, float(error))
