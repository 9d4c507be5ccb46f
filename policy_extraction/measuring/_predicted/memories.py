"""Memories of any number of words as arrays of numbers.

An interaction in which an agent said a and heard b has the code aW + b. A memory is a row of H codes, newest first,
with -1 beyond its end. The pattern of a word in a memory says in which interactions it was said and heard, whatever the
other words are. Patterns are numbered as memories of two words, 4^H + … + 1 in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meanfield import MemorySpace
from policy_extraction.measuring._answers import Memory

NONE = -1


class Patterns(NamedTuple):
    """All patterns of a word: `own` and `partner` (U, H), newest first, 1 where it was said, and `length` (U,)."""

    own: np.ndarray
    partner: np.ndarray
    length: np.ndarray

    def at(self, numbers: np.ndarray) -> Patterns:
        """The memories of these numbers."""
        return Patterns(*(each[numbers] for each in self))


def all_patterns(memory_length: int) -> Patterns:
    """The patterns of memories of up to `memory_length` interactions, in the order of their numbers."""
    space = MemorySpace(2, memory_length)
    own, partner = np.zeros((2, space.n_states, memory_length))
    length = np.zeros(space.n_states)
    for h in range(1, memory_length + 1):
        block = slice(space.offset(h), space.offset(h + 1))
        digits = np.arange(4**h)[:, None] // 4 ** np.arange(h) % 4
        own[block, :h], partner[block, :h], length[block] = digits // 2, digits % 2, h
    return Patterns(own, partner, length)


def codes_of(memories: Sequence[Memory], n_words: int, memory_length: int) -> np.ndarray:
    """Rows of codes (n, H) of memories, which are oldest first."""
    codes = np.full((len(memories), memory_length), NONE)
    for row, memory in zip(codes, memories, strict=True):
        row[: len(memory)] = [own * n_words + partner for own, partner in reversed(memory)]
    return codes


def memory_of(codes: np.ndarray, n_words: int) -> Memory:
    """The memory, oldest first, of a row of codes (H,)."""
    return tuple(divmod(int(code), n_words) for code in codes[::-1] if code != NONE)


def pattern_numbers(codes: np.ndarray, n_words: int) -> np.ndarray:
    """Numbers of the patterns of all words, shape (n, W)."""
    words, known = np.arange(n_words), (codes != NONE)[..., None]
    digits = 2 * (codes[..., None] // n_words == words) + (codes[..., None] % n_words == words)
    return np.einsum("nhw,h->nw", digits * known, 4 ** np.arange(codes.shape[1])) + _offsets(codes, 4)[:, None]


def states_of(codes: np.ndarray, n_words: int) -> np.ndarray:
    """Numbers (n,) in `MemorySpace` of rows of codes."""
    base = n_words**2
    return np.where(codes == NONE, 0, codes) @ base ** np.arange(codes.shape[1]) + _offsets(codes, base)


def _offsets(codes: np.ndarray, base: int) -> np.ndarray:
    """Numbers of all shorter memories."""
    shorter = np.concatenate([[0], np.cumsum(base ** np.arange(codes.shape[1]))])
    return shorter[(codes != NONE).sum(1)]
