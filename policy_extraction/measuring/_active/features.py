"""Memories of two words as numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield import MemorySpace


class Features(NamedTuple):
    """Memories as numbers; exchanging the two words changes all signs.

    Parameters
    ----------
    signs
        1 for the first word, -1 for the second, 0 beyond the end of the memory, shape (n, H, 2): newest interaction
        first, own word before the partner's.
    length
        Number of remembered interactions, shape (n,).
    """

    signs: np.ndarray
    length: np.ndarray

    def at(self, states: np.ndarray | slice) -> Features:
        """Those of some of the memories."""
        return Features(self.signs[states], self.length[states])


def features(space: MemorySpace) -> Features:
    """Features of all memories of two words, in the order of `MemorySpace`."""
    signs, length = np.zeros((space.n_states, space.memory_length, 2)), np.zeros(space.n_states)
    for h in range(1, space.memory_length + 1):
        block = slice(space.offset(h), space.offset(h + 1))
        digits = np.arange(4**h)[:, None] // 4 ** np.arange(h) % 4
        signs[block, :h] = 1 - 2 * np.stack([digits // 2, digits % 2], axis=-1)
        length[block] = h
    return Features(signs, length)
