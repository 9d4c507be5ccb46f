"""What a model has answered so far, memory by memory and order by order, for policies too large to measure whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from meanfield import InputError

Memory = tuple[tuple[int, int], ...]
MEMORIES_A_QUERY = 500  # SQLite takes at most 999 parameters in its oldest releases in use


class Answer(NamedTuple):
    """What was measured for one memory in one presentation order: shapes (W,)."""

    log_probability: np.ndarray
    censored: np.ndarray


Answers = dict[tuple[Memory, int], Answer]


class Asked:
    """Answers by (memory, number of the order), in an SQLite file or, without a path, in working memory.

    A portion is kept whole or not at all, whatever happens to the process; several processes may share a file.

    Raises
    ------
    InputError
        If the file can't be opened or is not what this class wrote.
    """

    def __init__(self, path: Path | None) -> None:
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            # Portions are written seconds apart, so that another writer is soon done.
            self._file = sqlite3.connect(":memory:" if path is None else path, timeout=60)
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS answers (memory BLOB, place INTEGER, log_probability BLOB, censored BLOB, "
                "PRIMARY KEY (memory, place)) WITHOUT ROWID"
            )
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"cache = {path}: can't be opened ({error}); pass cache=False or another folder") from None

    def __len__(self) -> int:
        return self._file.execute("SELECT COUNT(*) FROM answers").fetchone()[0]

    def put(self, keys: Sequence[tuple[Memory, int]], log_p: np.ndarray, censored: np.ndarray) -> None:
        """Keep answers (n, W) to (memory, order) pairs; what is known already stays as it is."""
        rows = [
            (_bytes(memory), place, log_p[i].astype("<f8").tobytes(), censored[i].astype("u1").tobytes())
            for i, (memory, place) in enumerate(keys)
        ]
        with self._file:
            self._file.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)", rows)

    def get(self, memories: Sequence[Memory]) -> Answers:
        """All answers about these memories that are known."""
        found: Answers = {}
        for first in range(0, len(memories), MEMORIES_A_QUERY):
            part = {_bytes(memory): memory for memory in memories[first : first + MEMORIES_A_QUERY]}
            marks = ", ".join("?" * len(part))
            rows = self._file.execute(f"SELECT * FROM answers WHERE memory IN ({marks})", list(part))
            found |= self._answers(rows)
        return found

    def everything(self) -> Answers:
        """All answers, by memory and order; shorter memories first."""
        return self._answers(self._file.execute("SELECT * FROM answers ORDER BY LENGTH(memory), memory, place"))

    def _answers(self, rows: Iterable[tuple[bytes, int, bytes, bytes]]) -> Answers:
        return {
            (_memory(memory), place): Answer(np.frombuffer(log_p, "<f8"), np.frombuffer(censored, "u1").astype(bool))
            for memory, place, log_p, censored in rows
        }


def _bytes(memory: Memory) -> bytes:
    """Words as bytes; there are fewer than 256."""
    return bytes(word for pair in memory for word in pair)


def _memory(content: bytes) -> Memory:
    return tuple(zip(content[::2], content[1::2], strict=True))
