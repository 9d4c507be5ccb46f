"""Damaged copies of valid files."""

from __future__ import annotations

import numpy as np

EDGES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
LONGEST_PIECE = 64  # bytes


def mutated(random: np.random.Generator, data: bytes) -> bytes:
    """`data` after one to four mutations, each at a random place."""
    content = bytearray(data)
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        if content:
            MUTATIONS[random.integers(len(MUTATIONS))](random, content)
    return bytes(content)


def _flip(random: np.random.Generator, content: bytearray) -> None:
    content[random.integers(len(content))] ^= 1 << random.integers(8)


def _set(random: np.random.Generator, content: bytearray) -> None:
    content[random.integers(len(content))] = random.integers(256)


def _number(random: np.random.Generator, content: bytearray) -> None:
    """Such as a length: 1, 2, 4 or 8 bytes, in either order."""
    size = int(random.choice([1, 2, 4, 8]))
    value = EDGES[random.integers(len(EDGES))] % 256**size
    at = int(random.integers(len(content)))
    content[at : at + size] = value.to_bytes(size, "little" if random.random() < 0.7 else "big")


def _cut(random: np.random.Generator, content: bytearray) -> None:
    del content[random.integers(len(content)) :]


def _remove(random: np.random.Generator, content: bytearray) -> None:
    at, size = _piece(random, content)
    del content[at : at + size]


def _copy(random: np.random.Generator, content: bytearray) -> None:
    """A piece over another, or in between."""
    (at, size), to = _piece(random, content), int(random.integers(len(content)))
    content[to : to + size * int(random.random() < 0.5)] = content[at : at + size]


def _noise(random: np.random.Generator, content: bytearray) -> None:
    at, size = _piece(random, content)
    content[at : at + size] = random.bytes(size)


def _erase(random: np.random.Generator, content: bytearray) -> None:
    at, size = _piece(random, content)
    content[at : at + size] = bytes(size)


def _piece(random: np.random.Generator, content: bytearray) -> tuple[int, int]:
    return int(random.integers(len(content))), int(random.integers(1, LONGEST_PIECE))


MUTATIONS = (_flip, _flip, _set, _number, _number, _cut, _remove, _copy, _noise, _erase)
