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

from meanfield._population.mixture import Mixture

Covariance = Float[np.ndarray, "nodes nodes pairs pairs"]  # of field ab at node n with cd at node m ≤ n

STEPS = 1, 2, 4  # nodes


class Border(NamedTuple):
    """A function of the state where an agent ends: its covariance with the fields, and its variance."""

    covariance: Float[np.ndarray, "nodes pairs"]
    variance: float


def met_others(
    mixture: Mixture,
    logarithms: Float[np.ndarray, "nodes pairs"],
    u: Float[np.ndarray, "nodes kinds states"],
    v: Float[np.ndarray, "nodes kinds states"],
) -> Float[np.ndarray, " nodes"]:
    """Σ_ab g_ab g_ba less the mean of the same of an agent, who does not meet itself; 0 for agents of one kind."""
    if len(mixture.share) == 1 and not mixture.committed.any():
        return np.zeros(len(u))
    n_words = mixture.space.n_words
    after = mixture.space.successors()[:, None] + np.arange(n_words**2)

    def met(g: np.ndarray) -> np.ndarray:
        return (g * g.swapaxes(1, 2)).sum((1, 2))

    alone = np.full(len(u), mixture.committed.sum())
    for kind, (q, share) in enumerate(zip(mixture.q, mixture.share, strict=True)):
        followed = v[:, kind, after].reshape(len(v), -1, n_words, n_words)
        own = np.einsum("ni,ia,niab->nab", u[:, kind], q, followed, optimize=True)
        alone += met(own) / share if share > 0 else 0.0
    return met(np.exp(logarithms).reshape(-1, n_words, n_words)) - alone


def log_determinants(
    covariance: Covariance, pace: Float[np.ndarray, " nodes"], border: Border | None = None
) -> list[tuple[float, float]]:
    """Sign and logarithm with each node, every second, every fourth; `pace` is the length of a step at each node.

    With a border it is the determinant times the variance of its function, which fields have changed.
    """
    found = []
    for k in STEPS:
        edge = None if border is None else Border(border.covariance[::k], border.variance)
        found.append(_log_determinant(covariance[::k, ::k], k * pace[::k], edge))
    return found


def without_step(logarithms: Sequence[float]) -> tuple[float, float]:
    """What three steps tend to, and its error."""
    one, two, four = logarithms
    finer, coarser = (4 * one - two) / 3, (4 * two - four) / 3
    return float((16 * finer - coarser) / 15), float(abs(finer - coarser) / 15)


def _log_determinant(
    covariance: Covariance, pace: Float[np.ndarray, " nodes"], border: Border | None
) -> tuple[float, float]:
    n, _, C, _ = covariance.shape
    here, W = np.arange(n), round(C**0.5)
    weights = pace * np.where(np.isin(here, (0, n - 1)), 0.5, 1.0)
    swapped = np.arange(C).reshape(W, W).T.ravel()
    lower = covariance.copy()
    jump = lower[here, here]
    lower[here, here] /= 2
    # K as an operator: a field ab answers to the fields ba of others
    response = (lower + lower.transpose(1, 0, 3, 2))[..., swapped] * weights[:, None, None]
    matrix = np.eye(n * C + (border is not None))
    matrix[: n * C, : n * C] -= response.transpose(0, 2, 1, 3).reshape(n * C, n * C)
    if border is not None:
        matrix[:-1, -1] = -border.covariance.ravel()
        matrix[-1, :-1] = (weights[:, None] * border.covariance[:, swapped]).ravel()
        matrix[-1, -1] = border.variance
    sign, logarithm = np.linalg.slogdet(matrix)
    single = np.linalg.slogdet(np.eye(C) - response[here, here])[1]
    squares = weights**2 * (jump * jump[:, swapped][:, :, swapped]).sum((1, 2))
    return float(sign), float(logarithm - single.sum() - squares.sum() / 2)
