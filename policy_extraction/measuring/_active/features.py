"""Memories of two words as numbers, in pairs of mirror images.

The mirror image of a memory has the two words exchanged. The empty memory is its own.
"""

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
    doubt
        1 where both words have the same chance, 0 where one of them is sure, if that is known, shape (n,).
    """

    signs: np.ndarray
    length: np.ndarray
    doubt: np.ndarray

    def at(self, states: np.ndarray | slice) -> Features:
        """Features of some of the memories."""
        return Features(*(each[states] for each in self))


def features(space: MemorySpace) -> Features:
    """Features of all memories of two words, in the order of `MemorySpace`."""
    signs, length = np.zeros((space.n_states, space.memory_length, 2)), np.zeros(space.n_states)
    for h in range(1, space.memory_length + 1):
        block = slice(space.offset(h), space.offset(h + 1))
        digits = np.arange(4**h)[:, None] // 4 ** np.arange(h) % 4
        signs[block, :h] = 1 - 2 * np.stack([digits // 2, digits % 2], axis=-1)
        length[block] = h
    return Features(signs, length, np.zeros(space.n_states))


def doubt(odd: np.ndarray, variance: np.ndarray | float = 0.0) -> np.ndarray:
    """The mean of exp(-o²/2) for odd parts o of this mean and variance."""
    return np.exp(-(odd**2) / (2 * (1 + variance))) / np.sqrt(1 + variance)


def mirror_pairs(space: MemorySpace) -> np.ndarray:
    """Numbers of memories and of their mirror images, shape (P, 2); the empty memory is pair 0, the others have two."""
    blocks = [np.zeros((1, 2), dtype=int)]
    for h in range(1, space.memory_length + 1):
        half = np.arange(4**h // 2)  # the digit of an interaction is 2·own + partner's, and 3 minus it in the mirror
        blocks.append(space.offset(h) + np.stack([half, 4**h - 1 - half], axis=1))
    return np.concatenate(blocks)
