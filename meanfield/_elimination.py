"""Stationary laws of Markov chains by elimination without subtraction."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

BLOCK = 32  # states eliminated together, so that the rest of the chain is updated by one matrix product
NOTHING = 1e-290
LARGE = 1e10  # above, laws are scaled down, before a ratio of up to 1e290 overflows


def stationary_law(
    chain: Float[np.ndarray, "laws n n"], occupied: Bool[np.ndarray, "laws n"]
) -> Float[np.ndarray, "laws n"]:
    """Stationary laws of chains, each entry to full relative accuracy however small it is; O(n³) a law.

    Diagonals are not read: what leaves a state is the sum of the other entries of its row. States that are not
    `occupied` get weight 0. Source: Grassmann, Taksar and Heyman, Operations Research 33, 1107 (1985).
    """
    eliminated = np.where(occupied[:, :, None] & occupied[:, None, :], chain, 0.0)
    n = eliminated.shape[1]
    for end in range(n, 0, -BLOCK):
        start = max(end - BLOCK, 0)
        # Copies, so that columns are contiguous too
        rows = eliminated[:, start:end, :end].copy()
        columns = eliminated[:, :start, start:end].transpose(0, 2, 1).copy()
        for k in range(end - start - 1, -1, -1):
            row = rows[:, k, : start + k]
            # A state from which none of the remaining ones is reached directly holds all the weight: a leak of 1e-290
            # says so without a division by zero.
            leaves = (row.sum(1) + NOTHING)[:, None]
            columns[:, k] /= leaves
            rows[:, :k, start + k] /= leaves
            rows[:, :k, : start + k] += rows[:, :k, start + k, None] * row[:, None, :]
            columns[:, :k] += row[:, start:, None] * columns[:, k, None, :]
        eliminated[:, start:end, start:end] = rows[:, :, start:]
        columns = columns.transpose(0, 2, 1)
        eliminated[:, :start, start:end] = columns
        eliminated[:, :start, :start] += columns @ rows[:, :, :start]
    first = occupied.argmax(1)
    law = np.zeros(eliminated.shape[:2])
    total = np.zeros(len(law))
    ratios = eliminated.transpose(0, 2, 1).copy()
    for k in range(n):
        law[:, k] = np.where(first == k, 1.0, np.einsum("gi,gi->g", law[:, :k], ratios[:, k, :k]))
        total += law[:, k]
        if total.max() > LARGE:
            law /= np.maximum(total, NOTHING)[:, None]
            total = law.sum(1)
    return law / np.maximum(total, NOTHING)[:, None]
