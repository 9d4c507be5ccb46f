"""Which requests are in which batch of a server; it outlives the process that submitted them."""

from __future__ import annotations

import asyncio
import sqlite3
import time
import warnings
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from meanfield import StorageError
from policy_extraction._toolbox.checksums import checksum

LOOK = 0.1  # seconds between two attempts to open a file that another process writes
TABLES = (
    "CREATE TABLE IF NOT EXISTS files (file TEXT PRIMARY KEY, batch TEXT, ended TEXT NOT NULL, uploaded REAL NOT NULL)",
    "CREATE TABLE IF NOT EXISTS requests (key TEXT PRIMARY KEY, file TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS checked_replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL, checksum)",
    "CREATE TABLE IF NOT EXISTS left_out (field TEXT PRIMARY KEY) WITHOUT ROWID",
)


class Notes:
    """The tables of a journal, open for one process."""

    def __init__(self, tables: sqlite3.Connection) -> None:
        self._tables = tables

    def empty(self) -> bool:
        """Whether nothing was ever asked or uploaded."""
        found = self._tables.execute("SELECT 1 FROM files UNION ALL SELECT 1 FROM checked_replies LIMIT 1")
        return found.fetchone() is None

    def replied(self, key: str, reply: str) -> None:
        """Note the reply to a request that was asked at once."""
        row = key, reply, checksum(key, reply)
        self._tables.execute("INSERT OR REPLACE INTO checked_replies VALUES (?, ?, ?)", row)

    def replies(self) -> dict[str, str]:
        """Replies to requests that were asked at once, by key; a damaged one is removed, with a warning."""
        found = {}
        for *row, known in self._tables.execute("SELECT * FROM checked_replies").fetchall():
            if known == checksum(*row):
                found[row[0]] = row[1]
            else:
                self._tables.execute("DELETE FROM checked_replies WHERE key IS ?", row[:1])
                warnings.warn("a damaged reply among the notes of batches was removed, to be asked again", stacklevel=2)
        return found

    def refused(self, fields: Iterable[str]) -> frozenset[str]:
        """Note fields that the service refuses; those that any process found."""
        self._tables.executemany("INSERT OR IGNORE INTO left_out VALUES (?)", ((field,) for field in fields))
        return frozenset(field for (field,) in self._tables.execute("SELECT field FROM left_out"))

    def files(self, keys: Iterable[str]) -> dict[str, str]:
        """The file in which each request was uploaded last, without those that never were."""
        found = (self._tables.execute("SELECT * FROM requests WHERE key = ?", (key,)).fetchone() for key in keys)
        return dict(row for row in found if row)

    def uploaded(self, file: str, keys: Iterable[str]) -> None:
        """Note a new file of requests, which has no batch yet."""
        self._tables.execute("INSERT INTO files VALUES (?, NULL, '', ?)", (file, time.time()))
        self._tables.executemany("INSERT OR REPLACE INTO requests VALUES (?, ?)", ((key, file) for key in keys))

    def begun(self, file: str, batch: str) -> None:
        """Note the batch of a file."""
        self._tables.execute("UPDATE files SET batch = ? WHERE file = ?", (batch, file))

    def ended(self, file: str, status: str) -> None:
        """Note how the batch of a file ended."""
        self._tables.execute("UPDATE files SET ended = ? WHERE file = ?", (status, file))

    def forget(self, file: str) -> None:
        """Remove a file whose batch was refused, so that its requests are new again."""
        self._tables.execute("DELETE FROM requests WHERE file = ?", (file,))
        self._tables.execute("DELETE FROM files WHERE file = ?", (file,))

    def state(self, file: str) -> tuple[str | None, str] | None:
        """The batch of a file, None before it has one, and how it ended, '' before it has; None for unknown files."""
        return self._tables.execute("SELECT batch, ended FROM files WHERE file = ?", (file,)).fetchone()


class Journal:
    """Notes in an SQLite file or, without a path, in working memory."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._working_memory: sqlite3.Connection | None = None
        if path is None:
            self._working_memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[Notes]:
        """The notes, for one process at a time, which may talk to the server meanwhile; kept whole or not at all."""
        try:
            tables = self._working_memory or sqlite3.connect(self.path, timeout=0, isolation_level=None)  # type: ignore[arg-type]
            try:
                while not _begun(tables):
                    await asyncio.sleep(LOOK)
                try:
                    yield Notes(tables)
                except BaseException:
                    tables.execute("ROLLBACK")
                    raise
                tables.execute("COMMIT")
            finally:
                if tables is not self._working_memory:
                    tables.close()
        except sqlite3.Error as error:
            raise StorageError(
                f"cache = {self.path}: can't be read and written ({error}); pass another folder, or cache=False"
            ) from None


def _begun(tables: sqlite3.Connection) -> bool:
    """Whether the tables are this process's now."""
    try:
        tables.execute("BEGIN EXCLUSIVE")  # after a weaker lock a COMMIT could find the file busy
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            return False
        raise
    for table in TABLES:
        tables.execute(table)
    return True
