"""What a model has answered so far, memory by memory and order by order; it outlives the process that asked."""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeAlias

import numpy as np
from tqdm.auto import tqdm

from meanfield import ModelError, StorageError
from policy_extraction.backends._backend import Backend
from policy_extraction.measuring._sampling import check_log_probabilities
from policy_extraction.prompts._template import Prompt

Memory: TypeAlias = tuple[tuple[int, int], ...]
Asked: TypeAlias = tuple[Memory, int]
MEMORIES_A_QUERY = 500  # SQLite takes at most 999 parameters in its oldest releases in use
PAUSE = 0.5  # seconds between two writes at least; portions that come faster are collected


class Answers:
    """Log-probabilities by (memory, number of the order), in an SQLite file or, without a path, in working memory.

    Portions are kept whole or not at all, whatever happens to the process. Several processes may share a file: of two
    answers to one prompt the first is kept; a file that another process removes is made anew, for what comes after.

    Attributes
    ----------
    n_asked
        How many answers a model gave to this object.

    Raises
    ------
    StorageError
        If the file can't be read and written, here or later; what it holds is left as it is.
    """

    def __init__(self, path: Path | None) -> None:
        self.n_asked = 0
        self._path = path
        self._working_memory = sqlite3.connect(":memory:", check_same_thread=False) if path is None else None
        with self._opened():
            pass

    def __len__(self) -> int:
        with self._opened() as file:
            return file.execute("SELECT COUNT(*) FROM answers").fetchone()[0]

    def put(self, asked: Sequence[Asked], log_p: np.ndarray, censored: np.ndarray) -> None:
        """Keep answers (n, W); what is known already stays as it is."""
        rows = [
            (_bytes(memory), place, log_p[i].astype("<f8").tobytes(), censored[i].astype("u1").tobytes())
            for i, (memory, place) in enumerate(asked)
        ]
        with self._opened() as file:
            file.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)", rows)

    def get(self, asked: Sequence[Asked], n_words: int) -> tuple[np.ndarray, np.ndarray]:
        """Log-probabilities, NaN where nothing is known, and whether they are upper bounds only; shapes (n, W)."""
        log_p, censored = np.full((len(asked), n_words), np.nan), np.zeros((len(asked), n_words), dtype=bool)
        numbers = {(_bytes(memory), place): number for number, (memory, place) in enumerate(asked)}
        memories = list({memory: None for memory, _ in numbers})
        with self._opened() as file:
            for first in range(0, len(memories), MEMORIES_A_QUERY):
                part = memories[first : first + MEMORIES_A_QUERY]
                marks = ", ".join("?" * len(part))
                for memory, place, *found in file.execute(f"SELECT * FROM answers WHERE memory IN ({marks})", part):
                    if (number := numbers.get((memory, place))) is not None:
                        log_p[number], censored[number] = np.frombuffer(found[0], "<f8"), np.frombuffer(found[1], "u1")
        return log_p, censored

    def known(self) -> list[Asked]:
        """What was asked, shorter memories first."""
        with self._opened() as file:
            rows = file.execute("SELECT memory, place FROM answers ORDER BY LENGTH(memory), memory, place").fetchall()
        return [(tuple(zip(memory[::2], memory[1::2], strict=True)), place) for memory, place in rows]

    def complete(
        self, backend: Backend, words: Sequence[str], asked: Sequence[Asked], prompts: Sequence[Prompt], bar: tqdm
    ) -> tuple[np.ndarray, np.ndarray]:
        """What `get` gives once the model was asked what is not known; raises as `ask`."""
        log_p, censored = self.get(asked, len(words))
        missing = np.flatnonzero(np.isnan(log_p).any(axis=1))
        if not bar.disable:  # what was known before is no part of the rate
            bar.initial += len(asked) - len(missing)
            bar.n += len(asked) - len(missing)
            bar.refresh()
        left = [asked[number] for number in missing]
        log_p[missing], censored[missing] = self.ask(backend, words, left, [prompts[number] for number in missing], bar)
        # Another process may have been first with an answer, and the same call must give the same again.
        kept, bounds = self.get(left, len(words))
        held = ~np.isnan(kept).any(axis=1)
        log_p[missing[held]], censored[missing[held]] = kept[held], bounds[held]
        return log_p, censored

    def ask(
        self,
        backend: Backend,
        words: Sequence[str],
        asked: Sequence[Asked],
        prompts: Sequence[Prompt],
        bar: tqdm,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Ask a model and keep what it answers; shapes as in `get`. An interrupt is told of in one line on stderr.

        Raises
        ------
        InputError
            If no policy can be made of an answer, before it is kept for good.
        ModelError
            If an answer is NaN, or some are missing.
        """
        log_p, censored = np.full((len(asked), len(words)), np.nan), np.zeros((len(asked), len(words)), dtype=bool)
        try:
            with self._collecting(asked, log_p, censored) as keep:
                for scores in backend.score(prompts, words):
                    if np.isnan(scores.log_probability).any():
                        raise ModelError(
                            f"model = {backend.name}: it returned log-probabilities that are no numbers (NaN)"
                        )
                    check_log_probabilities(scores.log_probability)
                    log_p[scores.numbers], censored[scores.numbers] = scores.log_probability, scores.censored
                    keep(scores.numbers)
                    self.n_asked += len(scores.numbers)
                    bar.update(len(scores.numbers))
        except KeyboardInterrupt as interrupt:
            kept = f"{len(self):,} answers are kept in {self._path}, from which the same call goes on"
            kept = "no answer is kept on disk" if self._path is None else kept
            bar.close()
            print(f"{backend.name}: interrupted; {kept}", file=sys.stderr)
            interrupt.told = True  # type: ignore[attr-defined] # so that a command does not say it again
            raise
        left = int(np.isnan(log_p).any(axis=1).sum())
        if left:
            raise ModelError(f"model = {backend.name}: it left {left} prompts without an answer")
        return log_p, censored

    @contextmanager
    def _collecting(
        self, asked: Sequence[Asked], log_p: np.ndarray, censored: np.ndarray
    ) -> Iterator[Callable[[np.ndarray], None]]:
        """Gives a function that keeps answers by their numbers, the last of them when the block ends in any way."""
        waiting: list[int] = []
        written = 0.0

        def write() -> None:
            nonlocal written
            self.put([asked[number] for number in waiting], log_p[waiting], censored[waiting])
            waiting.clear()
            written = time.monotonic()

        def keep(numbers: np.ndarray) -> None:
            waiting.extend(numbers.tolist())
            if time.monotonic() >= written + PAUSE:
                write()

        try:
            yield keep
        finally:
            write()

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """The file, for one transaction: what happens inside is written whole or not at all."""
        try:
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            # Portions are written seconds apart, so that another writer is soon done.
            file = self._working_memory or sqlite3.connect(self._path, timeout=60)
            with file if file is self._working_memory else closing(file), file:
                file.execute(
                    "CREATE TABLE IF NOT EXISTS answers (memory BLOB, place INTEGER, log_probability BLOB, "
                    "censored BLOB, PRIMARY KEY (memory, place)) WITHOUT ROWID"
                )
                yield file
        except (OSError, sqlite3.Error) as error:
            raise StorageError(
                f"cache = {self._path}: can't be read and written ({error}); pass another folder, or cache=False"
            ) from None


def _bytes(memory: Memory) -> bytes:
    """Words as bytes; there are fewer than 256."""
    return bytes(word for pair in memory for word in pair)
