"""Contribution of the fluctuations of fields about a path to a probability: the determinant det₂(1 - K).

K is the covariance of the fields of one agent at two times, and det₂(1 - K) = det(1 - K) exp(tr K). A trapezoidal rule
makes it finite, with averages at t = t', where K jumps. The contribution of single nodes beyond tr K² is taken out, so
that det₂ = 1 on a path without momentum, as it must be. Errors are even powers of the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg.lapack import dgbtrf, dgbtrs

Nodes = Float[np.ndarray, " nodes"]
Square = Float[np.ndarray, "fields fields"]
Covariance = Float[np.ndarray, "nodes nodes fields fields"]  # of a field at node n with one at node m ≤ n

STEPS = 1, 2, 4  # nodes


class Border(NamedTuple):
    """A function of the state where an agent ends: its covariance with the fields, and its variance."""

    covariance: Float[np.ndarray, "nodes fields"]
    variance: float


def log_determinants(
    covariance: Covariance, pairing: Square, pace: Nodes, border: Border | None = None
) -> list[tuple[float, float]]:
    """Sign and logarithm with each node, every second, every fourth; `pace` is the length of a step at each node.

    Fields act on agents by their `pairing`. With a border it is the determinant times the variance of its function,
    which fields have changed.
    """
    edges = [border and Border(border.covariance[::k], border.variance) for k in STEPS]
    steps = zip(STEPS, edges, strict=True)
    return [_log_determinant(covariance[::k, ::k], pairing, k * pace[::k], edge) for k, edge in steps]


def without_step(logarithms: Sequence[float]) -> tuple[float, float]:
    """Limit of the values at three steps, and its error."""
    one, two, four = logarithms
    finer, coarser = (4 * one - two) / 3, (4 * two - four) / 3
    return float((16 * finer - coarser) / 15), float(abs(finer - coarser) / 15)


def _log_determinant(
    covariance: Covariance, pairing: Square, pace: Nodes, border: Border | None
) -> tuple[float, float]:
    """1 - K is a band matrix, since agents forget: fields at times far apart are independent.

    With a border it is the determinant of 1 - K times its Schur complement: the variance as fields change it.
    """
    n, _, C, _ = covariance.shape
    here = np.arange(n)
    weights = pace * np.where(np.isin(here, (0, n - 1)), 0.5, 1.0)
    jump = covariance[here, here]
    single = np.eye(C) - (jump + jump.transpose(0, 2, 1)) / 2 @ pairing * weights[:, None, None]
    reach = int(np.max(here[:, None] - here, where=covariance.any((2, 3)), initial=0))  # of dependence, in nodes
    width = (reach + 1) * C - 1  # of the band below and above the diagonal
    band = np.zeros((3 * width + 1, n * C))

    def fill(blocks: Float[np.ndarray, "blocks fields fields"], row: int, column: int) -> None:
        """The blocks beginning at these nodes, and on along the diagonal."""
        for a, b in np.ndindex(C, C):
            first = column * C + b
            band[2 * width + (row - column) * C + a - b, first : first + len(blocks) * C : C] = blocks[:, a, b]

    fill(single, 0, 0)
    for lag in range(1, reach + 1):
        later = covariance[here[lag:], here[:-lag]]
        fill(-later @ pairing * weights[: n - lag, None, None], lag, 0)
        fill(-later.transpose(0, 2, 1) @ pairing * weights[lag:, None, None], 0, lag)
    factors, pivots, _ = dgbtrf(band, width, width, overwrite_ab=True)
    diagonal = factors[2 * width]
    sign = np.prod(np.sign(diagonal)) * (-1.0) ** np.count_nonzero(pivots != np.arange(n * C))
    logarithm = np.log(np.abs(diagonal)).sum()
    if border is not None:
        acting = (weights[:, None] * (border.covariance @ pairing)).ravel()
        changed, _ = dgbtrs(factors, width, width, border.covariance.ravel(), pivots)
        variance = border.variance + acting @ changed
        sign, logarithm = sign * np.sign(variance), logarithm + np.log(abs(variance))
    squares = weights**2 * (jump * (pairing @ jump @ pairing)).sum((1, 2))
    return float(sign), float(logarithm - np.linalg.slogdet(single)[1].sum() - squares.sum() / 2)
