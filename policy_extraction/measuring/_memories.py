"""Memories of any number of words as arrays of numbers; `meanfield.core._space` numbers the states.

An interaction in which an agent said a and heard b has the code aW + b. A memory is a row of H codes, newest first,
with -1 beyond its end. The pattern of a word in a memory says in which interactions it was said and heard, whatever the
other words are. Patterns are numbered as memories of two words, 4^H + … + 1 in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from policy_extraction.prompts._games import Memory

NONE = -1


@lru_cache(1)
def all_patterns(memory_length: int) -> np.ndarray:
    """The patterns of memories of up to H interactions in the order of their numbers, 0 or 1, shape (U, 3H).

    The first H numbers say where the word was said, newest first, the next where it was heard, and the last where there
    is an interaction.
    """
    codes = all_codes(memory_length)
    said, heard, there = codes // 2 == 1, (codes % 2 == 1) & (codes != NONE), codes != NONE
    patterns = np.concatenate([said, heard, there], axis=1).astype(float)
    patterns.setflags(write=False)
    return patterns


def all_codes(memory_length: int) -> np.ndarray:
    """Rows of codes (S, H) of all memories of two words, in the order of `MemorySpace`."""
    blocks = [np.full((1, memory_length), NONE)]
    for h in range(1, memory_length + 1):
        block = np.full((4**h, memory_length), NONE)
        block[:, :h] = np.arange(4**h)[:, None] // 4 ** np.arange(h) % 4
        blocks.append(block)
    return np.concatenate(blocks)


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
