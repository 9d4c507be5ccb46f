"""What the fluctuations of fields about a path contribute to a chance: the determinant det₂(1 - K).

K is the covariance of the fields of one agent at two times, and det₂(1 - K) = det(1 - K) exp(tr K). A trapezoidal
rule makes it finite, with averages at t = t', where K jumps. What single nodes contribute beyond tr K² is taken out, so
that det₂ = 1 on a path without momentum, as it must be. Errors are even powers of the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Covariance = Float[np.ndarray, "nodes nodes fields fields"]  # of a field at node n with one at node m ≤ n

STEPS = 1, 2, 4  # nodes


class Border(NamedTuple):
    """A function of the state where an agent ends: its covariance with the fields, and its variance."""

    covariance: Float[np.ndarray, "nodes fields"]
    variance: float


def log_determinants(
    covariance: Covariance,
    pairing: Float[np.ndarray, "fields fields"],
    pace: Float[np.ndarray, " nodes"],
    border: Border | None = None,
) -> list[tuple[float, float]]:
    """Sign and logarithm with each node, every second, every fourth; `pace` is the length of a step at each node.

    Fields act on agents by their `pairing`. With a border it is the determinant times the variance of its function,
    which fields have changed.
    """
    found = []
    for k in STEPS:
        edge = None if border is None else Border(border.covariance[::k], border.variance)
        found.append(_log_determinant(covariance[::k, ::k], pairing, k * pace[::k], edge))
    return found


def without_step(logarithms: Sequence[float]) -> tuple[float, float]:
    """What three steps tend to, and its error."""
    one, two, four = logarithms
    finer, coarser = (4 * one - two) / 3, (4 * two - four) / 3
    return float((16 * finer - coarser) / 15), float(abs(finer - coarser) / 15)


def _log_determinant(
    covariance: Covariance, pairing: np.ndarray, pace: Float[np.ndarray, " nodes"], border: Border | None
) -> tuple[float, float]:
    n, _, C, _ = covariance.shape
    here = np.arange(n)
    weights = pace * np.where(np.isin(here, (0, n - 1)), 0.5, 1.0)
    lower = covariance.copy()
    jump = lower[here, here]
    lower[here, here] /= 2
    response = (
        np.tensordot(lower + lower.transpose(1, 0, 3, 2), pairing, 1) * weights[:, None, None]
    )  # K as an operator
    matrix = np.eye(n * C + (border is not None))
    matrix[: n * C, : n * C] -= response.transpose(0, 2, 1, 3).reshape(n * C, n * C)
    if border is not None:
        matrix[:-1, -1] = -border.covariance.ravel()
        matrix[-1, :-1] = (weights[:, None] * (border.covariance @ pairing)).ravel()
        matrix[-1, -1] = border.variance
    sign, logarithm = np.linalg.slogdet(matrix)
    single = np.linalg.slogdet(np.eye(C) - response[here, here])[1]
    squares = weights**2 * (jump * (pairing @ jump @ pairing)).sum((1, 2))
    return float(sign), float(logarithm - single.sum() - squares.sum() / 2)
