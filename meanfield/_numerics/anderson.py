"""Fixed points of maps whose linearisation is close to one of low rank."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

MEMORY = 8  # differences kept
REGULARISATION = 1e-14  # of the least squares, relative: differences of converged iterates are parallel

Vector = Float[np.ndarray, " n"]


def anderson(
    advance: Callable[[Vector], Vector], start: Vector, done: Callable[[Vector], bool], max_iterations: int
) -> Vector | None:
    """A solution of x = advance(x) by Anderson's mixing, or None if the iteration does not end or diverges.

    The next iterate combines the last ones, with weights that sum to 1 and minimise the combined residual. For a linear
    map this is GMRES: it does not need `advance` to contract. `advance` is NaN where the map is not defined; `done`
    says whether the residual advance(x) - x is small enough. Source: Walker and Ni, SIAM J. Numer. Anal. 49, 1715
    (2011).
    """
    x, previous = start, None
    moves: deque[Vector] = deque(maxlen=MEMORY)
    changes: deque[Vector] = deque(maxlen=MEMORY)
    for _ in range(max_iterations):
        value = advance(x)
        residual = value - x
        if not np.isfinite(residual).all():
            return None
        if done(residual):
            return value
        if previous is not None:
            moves.append(value - previous[0])
            changes.append(residual - previous[1])
        previous = value, residual
        x = value
        if changes:
            gram = np.array([[a @ b for b in changes] for a in changes])
            gram += REGULARISATION * np.trace(gram) * np.eye(len(gram))
            weights = np.linalg.lstsq(gram, np.array([a @ residual for a in changes]), rcond=None)[0]
            for weight, move in zip(weights, moves, strict=True):
                x = x - weight * move
    return None
