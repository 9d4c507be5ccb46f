"""Newton's method with GMRES for the fixed point of messages, in their logarithms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres

from meanfield._numerics.blas import one_blas_thread

ROUGH = 1e-3  # size of residuals below which the next may be larger
MAX_KRYLOV = 150  # evaluations
# Of GMRES: the second where paths that wait near an attractor, for any time, hardly differ, so that convergence is slow
KRYLOV_TOLERANCES, SLOW = (1e-2, 1e-6), 0.3
DIFFERENCE = 1e-6  # of logarithms of messages, for their derivatives
FARTHEST = 3.0  # that logarithms may move in a step
SMALLEST_PART = 0.03  # of a step


Image = TypeVar("Image")  # with `logarithms`, `residual`, how far their images are from them, and its `size`
Evaluate = Callable[[Any], Any]  # an Image, or None where messages leave all bounds


@one_blas_thread()
def message_newton(evaluate: Callable[[Any], Image | None], start: Any, tolerance: float, most: int) -> Image | None:
    """The messages that are their own images, or None if the search does not converge in about `most` evaluations.

    `evaluate` gives their images, or None where they leave all bounds.
    """
    used = 0

    def counted(logarithms: Any) -> Any:
        nonlocal used
        used += 1
        return evaluate(logarithms)

    krylov, exact = KRYLOV_TOLERANCES
    found = counted(start)
    while found is not None and found.size >= tolerance:
        if used >= most:
            return None
        nearer = _nearer(counted, found, _step(counted, found, krylov))
        if nearer is None and krylov == exact:
            return None
        if nearer is None or nearer.size > SLOW * found.size:
            krylov = exact
        found = found if nearer is None else nearer
    return found


def _step(evaluate: Evaluate, found: Any, tolerance: float) -> Any:
    shape, size = found.logarithms.shape, found.logarithms.size

    def product(direction: np.ndarray) -> np.ndarray:
        scale = DIFFERENCE / max(np.abs(direction).max(), 1e-300)
        there = evaluate(found.logarithms + scale * direction.reshape(shape))
        return direction * np.nan if there is None else (found.residual - there.residual).ravel() / scale

    matrix = LinearOperator((size, size), matvec=product, dtype=float)
    step = gmres(matrix, found.residual.ravel(), rtol=tolerance, restart=MAX_KRYLOV, maxiter=1)[0]
    return step.reshape(shape)


def _nearer(evaluate: Evaluate, found: Any, step: Any) -> Any:
    part = min(1.0, FARTHEST / np.abs(step).max())
    while part > SMALLEST_PART:
        there = evaluate(found.logarithms + part * step)
        if there is not None and there.size < max(ROUGH, (1 - part / 10) * found.size):
            return there
        part /= 2
    return None
