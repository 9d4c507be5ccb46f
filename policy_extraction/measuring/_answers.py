"""The answers of a model so far, by memory and presentation order; they outlive the process that asked."""

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
from policy_extraction.backends._backend import Backend, Scores, Submitting
from policy_extraction.measuring._sampling import check_log_probabilities
from policy_extraction.prompts._template import Prompt

Memory: TypeAlias = tuple[tuple[int, int], ...]
Asked: TypeAlias = tuple[Memory, int]
MEMORIES_A_QUERY = 500  # old releases of SQLite take at most 999 parameters
PAUSE = 0.5  # least seconds between two writes; faster portions are collected


class Answers:
    """Log-probabilities by (memory, number of the order), and words of sampled answers.

    They are in an SQLite file or, without a path, in working memory. Portions are kept whole or not at all, even if the
    process is killed. Several processes may share a file: the first answer to a prompt is kept, and a removed file is
    made anew. Every method raises StorageError if the file can't be read and written, and leaves it as it is.
    """

    def __init__(self, path: Path | None) -> None:
        self.n_asked = 0  # answers that a model gave to this object
        self._path = path
        self._working_memory = sqlite3.connect(":memory:", check_same_thread=False) if path is None else None
        with self._opened():
            pass

    def __len__(self) -> int:
        with self._opened() as file:
            return file.execute("SELECT COUNT(*) FROM answers").fetchone()[0]

    def put(self, asked: Sequence[Asked], log_p: np.ndarray, censored: np.ndarray) -> None:
        """Keep answers (n, W); known ones stay as they are."""
        rows = [
            (_bytes(memory), place, log_p[i].astype("<f8").tobytes(), censored[i].astype("u1").tobytes())
            for i, (memory, place) in enumerate(asked)
        ]
        with self._opened() as file:
            file.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)", rows)

    def get(self, asked: Sequence[Asked], n_words: int) -> tuple[np.ndarray, np.ndarray]:
        """Log-probabilities, NaN where unknown, and whether they are upper bounds only; shapes (n, W)."""
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

    def put_said(self, said: Sequence[tuple[Memory, int]], temperature: float, words: Sequence[int]) -> None:
        """Keep numbers of the words of sampled answers to memories, by their numbers; known ones stay as they are."""
        rows = [(_bytes(memory), temperature, n, word) for (memory, n), word in zip(said, words, strict=True)]
        with self._opened() as file:
            file.executemany("INSERT OR IGNORE INTO said VALUES (?, ?, ?, ?)", rows)

    def said(self, said: Sequence[tuple[Memory, int]], temperature: float) -> dict[tuple[Memory, int], int]:
        """Numbers of the words of those sampled answers that are known."""
        memories, found = list({memory: None for memory, _ in said}), {}
        with self._opened() as file:
            for memory in memories:
                rows = file.execute(
                    "SELECT number, word FROM said WHERE memory = ? AND temperature = ?", (_bytes(memory), temperature)
                )
                found |= {(memory, number): word for number, word in rows}
        return {each: found[each] for each in said if each in found}

    def tell_interrupted(self, name: str, interrupt: KeyboardInterrupt) -> None:
        """Print on stderr what is kept, once."""
        with self._opened() as file:
            number = sum(file.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in ("answers", "said"))
        kept = f"{number:,} answers are kept in {self._path}, from which the same call goes on"
        print(f"{name}: interrupted; {kept if self._path else 'no answer is kept on disk'}", file=sys.stderr)
        interrupt.told = True  # type: ignore[attr-defined] # keeps a command from saying it again

    def known(self) -> list[Asked]:
        """All known (memory, order), shorter memories first."""
        with self._opened() as file:
            rows = file.execute("SELECT memory, place FROM answers ORDER BY LENGTH(memory), memory, place").fetchall()
        return [(tuple(zip(memory[::2], memory[1::2], strict=True)), place) for memory, place in rows]

    def complete(
        self, backend: Backend, words: Sequence[str], asked: Sequence[Asked], prompts: Sequence[Prompt], bar: tqdm
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `get`, after asking the model for all unknown answers; raises as `ask`."""
        log_p, censored = self.get(asked, len(words))
        missing = np.flatnonzero(np.isnan(log_p).any(axis=1))
        if not bar.disable:  # known answers do not count for the rate
            bar.initial += len(asked) - len(missing)
            bar.n += len(asked) - len(missing)
            bar.refresh()
        left = [asked[number] for number in missing]
        log_p[missing], censored[missing] = self.ask(backend, words, left, [prompts[number] for number in missing], bar)
        return log_p, censored

    def ask(
        self,
        backend: Backend,
        words: Sequence[str],
        asked: Sequence[Asked],
        prompts: Sequence[Prompt],
        bar: tqdm,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Ask a model and keep its answers; shapes as in `get`. An interrupt prints one line on stderr.

        Raises
        ------
        InputError
            If an answer allows no policy; it is not kept.
        ModelError
            If an answer is NaN or missing.
        """
        log_p, censored = np.full((len(asked), len(words)), np.nan), np.zeros((len(asked), len(words)), dtype=bool)
        try:
            with self._collecting(asked, log_p, censored) as keep:
                for scores in self._scores(backend, words, prompts, bar):
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
            bar.close()
            self.tell_interrupted(backend.name, interrupt)
            raise
        left = int(np.isnan(log_p).any(axis=1).sum())
        if left:
            raise ModelError(f"model = {backend.name}: it left {left} prompts without an answer")
        # Another process may have answered first, and a repeated call must give the same.
        kept, bounds = self.get(asked, len(words))
        held = ~np.isnan(kept).any(axis=1)
        log_p[held], censored[held] = kept[held], bounds[held]
        return log_p, censored

    def submit(self, backend: Backend, words: Sequence[str], asked: Sequence[Asked], prompts: Sequence[Prompt]) -> None:
        """Leave all unknown answers with a back end that can be asked later, without waiting for them."""
        missing = np.flatnonzero(np.isnan(self.get(asked, len(words))[0]).any(axis=1))
        if not isinstance(backend, Submitting) or self._path is None or not len(missing):
            return
        left = [asked[number] for number in missing]
        for scores in backend.score_later(
            [prompts[number] for number in missing], words, journal=self._journal, tell=lambda said: None, wait=False
        ):
            check_log_probabilities(scores.log_probability)
            self.put([left[number] for number in scores.numbers], scores.log_probability, scores.censored)

    @property
    def _journal(self) -> Path | None:
        """Where a back end notes what it has submitted; it is removed with the answers."""
        return None if self._path is None else self._path.with_suffix(".batches.sqlite")

    def _scores(self, backend: Backend, words: Sequence[str], prompts: Sequence[Prompt], bar: tqdm) -> Iterator[Scores]:
        if isinstance(backend, Submitting):
            return backend.score_later(prompts, words, journal=self._journal, tell=bar.set_postfix_str)
        return backend.score(prompts, words)

    @contextmanager
    def _collecting(
        self, asked: Sequence[Asked], log_p: np.ndarray, censored: np.ndarray
    ) -> Iterator[Callable[[np.ndarray], None]]:
        """Give a function that keeps answers by their numbers; the end of the block writes the last of them."""
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
        """The file, for one transaction, which is written whole or not at all."""
        try:
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            # Portions are written seconds apart, so another writer is soon done.
            file = self._working_memory or sqlite3.connect(self._path, timeout=60)
            with file if file is self._working_memory else closing(file), file:
                file.execute(
                    "CREATE TABLE IF NOT EXISTS answers (memory BLOB, place INTEGER, log_probability BLOB, "
                    "censored BLOB, PRIMARY KEY (memory, place)) WITHOUT ROWID"
                )
                file.execute(
                    "CREATE TABLE IF NOT EXISTS said (memory BLOB, temperature REAL, number INTEGER, word INTEGER, "
                    "PRIMARY KEY (memory, temperature, number)) WITHOUT ROWID"
                )
                yield file
        except (OSError, sqlite3.Error) as error:
            raise StorageError(
                f"cache = {self._path}: can't be read and written ({error}); pass another folder, or cache=False"
            ) from None


def _bytes(memory: Memory) -> bytes:
    """The words of a memory as bytes; there are fewer than 256 words."""
    return bytes(word for pair in memory for word in pair)
