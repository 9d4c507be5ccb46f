"""Frequencies of agents in each memory, whatever their partners say."""

from __future__ import annotations

import numpy as np

from meanfield import MemorySpace

SHARES = (0.02, 0.25, 0.5, 0.75, 0.98)  # of the first word among partners
LENGTHS = 4  # interactions that are followed, in lengths of the memory


def visits(q: np.ndarray, space: MemorySpace) -> np.ndarray:
    """Share of agents in each memory (S,), over time from empty memories and over word shares of the partners.

    `q` has shape (S, 2).
    """
    successors, steps = space.successors(), LENGTHS * space.memory_length
    total = np.zeros(space.n_states)
    for share in SHARES:
        x = np.zeros(space.n_states)
        x[0] = 1.0
        for _ in range(steps):
            total += x
            after = np.zeros(space.n_states)
            for own, heard in np.ndindex(2, 2):
                flow = x * q[:, own] * (share, 1 - share)[heard]
                after += np.bincount(successors + 2 * own + heard, flow, space.n_states)
            x = after
    return total / total.sum()
