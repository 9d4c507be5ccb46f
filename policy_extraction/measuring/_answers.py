"""The answers of a model so far, by memory and presentation order; they outlive the process that asked."""

from __future__ import annotations

import sqlite3
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

from meanfield import InputError, ModelError, StorageError
from policy_extraction._toolbox.checksums import checksum
from policy_extraction.backends._backend import Backend, Submitting
from policy_extraction.measuring._sampling import Choice, Sampling, check_log_probabilities, choose
from policy_extraction.prompts._games import Asked, Memory
from policy_extraction.prompts._template import Prompt

INSERT = "INSERT OR IGNORE INTO {} VALUES (?1, ?2, ?3, ?4, checksum(?1, ?2, ?3, ?4))"
MEMORIES_A_QUERY = 500  # old releases of SQLite take at most 999 parameters
PAUSE = 0.5  # least seconds between two writes; faster portions are collected
TABLES = {
    "answers": "memory BLOB, place INTEGER, log_probability BLOB, censored BLOB, checksum, PRIMARY KEY (memory, place)",
    "said": "memory BLOB, temperature REAL, number INTEGER, word INTEGER, checksum, "
    "PRIMARY KEY (memory, temperature, number)",
}


class Answers:
    """Log-probabilities by (memory, number of the order), and words of sampled answers.

    They are in an SQLite file or, without a path, in working memory. Portions are kept whole or not at all, even if the
    process is killed. Several processes may share a file: the first answer to a prompt is kept, and a removed file is
    made anew. Every method raises StorageError if the file can't be read and written, and leaves it as it is. Each row
    has a checksum; damaged ones are removed, with a warning, when the file is first opened.
    """

    def __init__(self, path: Path | None) -> None:
        self.n_asked = 0  # answers that a model gave to this object
        self._path = path
        self._working_memory = sqlite3.connect(":memory:", check_same_thread=False) if path is None else None
        with self._opened() as file:
            damaged = sum(_remove_damaged(file, table) for table in TABLES)
        if damaged:
            warnings.warn(f"cache = {path}: {damaged:,} damaged answers were removed, to be asked again", stacklevel=4)

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
            file.executemany(INSERT.format("answers"), rows)

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
        rows = [(_bytes(memory), float(temperature), n, word) for (memory, n), word in zip(said, words, strict=True)]
        with self._opened() as file:
            file.executemany(INSERT.format("said"), rows)

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

    @contextmanager
    def telling(self, name: str, bar: tqdm | None = None) -> Iterator[None]:
        """Tell which answers are kept if the block fails: in its error, or after an interrupt on stderr."""
        try:
            yield
        except KeyboardInterrupt as interrupt:
            if bar is not None:
                bar.close()
            print(f"{name}: interrupted; {self._kept(again=True)}", file=sys.stderr)
            interrupt.told = True  # type: ignore[attr-defined] # keeps a command from saying it again
            raise
        except (InputError, ModelError) as error:
            error.args = (f"{error}; {self._kept(again=isinstance(error, ModelError))}",)
            raise

    def _kept(self, *, again: bool) -> str:
        """The number of answers that are kept; `again` if the same call would go on with them."""
        if self._path is None:
            return "no answer is kept on disk"
        with self._opened() as file:
            number = sum(file.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in TABLES)
        return f"{number:,} answers are kept in {self._path}" + ", from which the same call goes on" * again

    def known(self) -> list[Asked]:
        """All known (memory, order), shorter memories first."""
        with self._opened() as file:
            rows = file.execute("SELECT memory, place FROM answers ORDER BY LENGTH(memory), memory, place").fetchall()
        return [(tuple(zip(memory[::2], memory[1::2], strict=True)), place) for memory, place in rows]

    def complete(
        self,
        backend: Backend,
        words: Sequence[str],
        asked: Sequence[Asked],
        prompt: Callable[[Asked], Prompt],
        bar: tqdm,
        sampling: Sampling | None = None,
        wait: bool = True,
    ) -> tuple[np.ndarray, np.ndarray]:
        """`get` after asking the model for all unknown answers; raises as `ask`, for known answers too."""
        log_p, censored = self.get(asked, len(words))
        unknown = np.isnan(log_p).any(axis=1)
        if sampling is not None:
            decided(log_p[~unknown], censored[~unknown], sampling, backend.name)
        left = [asked[number] for number in np.flatnonzero(unknown)]
        if not bar.disable:  # known answers do not count for the rate
            bar.initial += len(asked) - len(left)
            bar.n += len(asked) - len(left)
            bar.refresh()
        log_p[unknown], censored[unknown] = self.ask(backend, words, left, prompt, bar, sampling, wait)
        return log_p, censored

    def ask(
        self,
        backend: Backend,
        words: Sequence[str],
        asked: Sequence[Asked],
        prompt: Callable[[Asked], Prompt],
        bar: tqdm,
        sampling: Sampling | None = None,
        wait: bool = True,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Ask a model and keep its answers; shapes as in `get`. An interrupt prints one line on stderr.

        Without `wait` prompts are left with a back end that can be asked later, and most answers are NaN. Raises
        InputError for an answer that allows no policy, which is not kept, or at the first one that `sampling` does not
        allow to be undecided, as no further answer could mend it; ModelError for one that is NaN or missing.
        """
        log_p, censored = np.full((len(asked), len(words)), np.nan), np.zeros((len(asked), len(words)), dtype=bool)
        prompts = [prompt(one) for one in asked]
        waiting: list[int] = []
        written = 0.0

        def write() -> None:
            self.put([asked[number] for number in waiting], log_p[waiting], censored[waiting])
            waiting.clear()

        with self.telling(backend.name, bar):
            if isinstance(backend, Submitting):
                every = backend.score_later(prompts, words, journal=self._journal, tell=bar.set_postfix_str, wait=wait)
            else:
                every = backend.score(prompts, words)
            try:
                for scores in every:
                    if np.isnan(scores.log_probability).any():
                        told = "it returned log-probabilities that are no numbers (NaN)"
                        raise ModelError(f"model = {backend.name}: {told}")
                    check_log_probabilities(scores.log_probability)
                    log_p[scores.numbers], censored[scores.numbers] = scores.log_probability, scores.censored
                    waiting += scores.numbers.tolist()
                    if time.monotonic() >= written + PAUSE:
                        write()
                        written = time.monotonic()
                    self.n_asked += len(scores.numbers)
                    bar.update(len(scores.numbers))
                    if sampling is not None:
                        decided(scores.log_probability, scores.censored, sampling, backend.name)
            finally:
                write()
        left = int(np.isnan(log_p).any(axis=1).sum())
        if left and wait:
            raise ModelError(f"model = {backend.name}: it left {left} prompts without an answer")
        # Another process may have answered first, and a repeated call must give the same.
        kept, bounds = self.get(asked, len(words))
        held = ~np.isnan(kept).any(axis=1)
        log_p[held], censored[held] = kept[held], bounds[held]
        return log_p, censored

    @property
    def _journal(self) -> Path | None:
        """Where a back end notes what it has submitted; it is removed with the answers."""
        return None if self._path is None else self._path.with_suffix(".batches.sqlite")

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """The file, for one transaction, which is written whole or not at all."""
        try:
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            # Portions are written seconds apart, so another writer is soon done.
            file = self._working_memory or sqlite3.connect(self._path, timeout=60)
            file.create_function("checksum", -1, checksum, deterministic=True)
            with file if file is self._working_memory else closing(file), file:
                for table, columns in TABLES.items():
                    file.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns}) WITHOUT ROWID")
                yield file
        except (OSError, sqlite3.Error) as error:
            raise StorageError(
                f"cache = {self._path}: can't be read and written ({error}); pass another folder, or cache=False"
            ) from None


def decided(log_p: np.ndarray, censored: np.ndarray, sampling: Sampling, name: str) -> Choice:
    """The probabilities of choice; InputError if an answer leaves them undecided, and this is to be an error."""
    choice = choose(log_p, censored, sampling)
    if sampling.undecided == "raise" and not choice.decided.all():
        raise InputError(
            f"model = {name}: an answer does not determine the probabilities of the words (censored words, or a filter "
            "over the vocabulary); a server can list more tokens (top_logprobs, or exact=True), and undecided='bound' "
            "gives intervals"
        )
    return choice


def _remove_damaged(file: sqlite3.Connection, table: str) -> int:
    """Remove the rows whose checksum is another one; their number."""
    columns = [name for _, name, *_ in file.execute(f"PRAGMA table_info({table})")]
    kinds, values = (", ".join(form.format(name) for name in columns[:4]) for form in ("typeof({})", "{}"))
    # No column has texts, and those that damage makes of bytes can't be decoded: they agree with no checksum.
    sound = f"CASE WHEN 'text' IN ({kinds}) THEN checksum(random()) ELSE checksum({values}) END"
    if len(columns) == 4:  # of release 0.2.0, which had no checksums
        file.execute(f"ALTER TABLE {table} ADD COLUMN checksum")
        file.execute(f"UPDATE {table} SET checksum = {sound}")
        if table == "answers":
            file.execute("UPDATE answers SET checksum = NULL WHERE length(log_probability) IS NOT 8 * length(censored)")
    damaged = f"FROM {table} WHERE checksum IS NOT {sound}"
    if number := file.execute(f"SELECT COUNT(*) {damaged}").fetchone()[0]:
        file.execute(f"DELETE {damaged}")
        if file.execute(f"SELECT COUNT(*) {damaged}").fetchone()[0]:
            raise sqlite3.DatabaseError(f"damaged rows in the table {table} can't be removed")
    return number


def _bytes(memory: Memory) -> bytes:
    """The words of a memory as bytes; there are fewer than 256 words."""
    return bytes(word for pair in memory for word in pair)
