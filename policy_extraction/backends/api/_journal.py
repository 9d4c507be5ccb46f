"""A record of which requests are in which batch of a server; it outlives the process that submitted them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from meanfield import StorageError

LOOK = 0.1  # seconds between two attempts to open a file that another process writes
TABLES = (
    "CREATE TABLE IF NOT EXISTS files (file TEXT PRIMARY KEY, batch TEXT, ended TEXT NOT NULL, uploaded REAL NOT NULL)",
    "CREATE TABLE IF NOT EXISTS requests (key TEXT PRIMARY KEY, file TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS checked_replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL, checksum)",
    "CREATE TABLE IF NOT EXISTS left_out (field TEXT PRIMARY KEY) WITHOUT ROWID",
)


class Journal:
    """Tables in an SQLite file or, without a path, in working memory.

    A file of requests has no batch at first, and `ended` is '' until its batch has; `left_out` are refused fields.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._working_memory: sqlite3.Connection | None = None
        if path is None:
            self._working_memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[sqlite3.Connection]:
        """The tables, for one process at a time, which may talk to the server meanwhile; kept whole or not at all."""
        try:
            tables = self._working_memory or sqlite3.connect(self.path, timeout=0, isolation_level=None)  # type: ignore[arg-type]
            try:
                while not _begun(tables):
                    await asyncio.sleep(LOOK)
                try:
                    yield tables
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
