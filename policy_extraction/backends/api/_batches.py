"""Requests that are left with a server in batches and fetched when they are answered."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import time
import warnings
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from meanfield import InputError
from policy_extraction._toolbox.checksums import checksum
from policy_extraction.backends.api._batch_wire import ENDED, RefusedFileError, Status, begin, fetch, look, upload
from policy_extraction.backends.api._errors import ServerError, may_pass
from policy_extraction.backends.api._journal import Journal
from policy_extraction.backends.api._limits import NONE, Usage
from policy_extraction.backends.api._reply import UnusableReplyError, dict_of, usage_of
from policy_extraction.backends.api._request import Request
from policy_extraction.backends.api._retries import PAUSE, Server

MOST_REQUESTS = 50_000  # in a batch of OpenAI's
MOST_BYTES = 100 * 2**20  # OpenAI takes 200 MB

Measurement = Coroutine["_Waiting", Any, Any]


@dataclass(eq=False)
class _Waiting:
    """A request that waits for its answer, which `await` gives to the measurement that asked."""

    key: str
    request: Request
    read: Callable[[dict[str, Any]], Any]
    measurement: Measurement = field(init=False)
    file: str = ""  # where it was uploaded last
    lost: str = ""  # a file whose batch ended without a usable answer
    tries: int = 0  # of this process

    def __await__(self) -> Generator[_Waiting, Any, Any]:
        return (yield self)


@dataclass
class _Open:
    """A batch whose answers are not here yet."""

    batch: str
    known_end: bool  # an earlier process has seen how it ended
    most: Usage
    used: Usage = NONE
    failures: dict[str, str] = field(default_factory=dict)


class Batches:
    """Measurements by batches, coroutines that await `ask`; `round` submits and fetches what they wait for.

    A request has a key, made of its content, under which the journal knows the file that it was uploaded in last. A
    request that is in the journal is never submitted again unless its batch ended without an answer to it.
    """

    def __init__(
        self,
        server: Server,
        poll: float,
        journal: Journal,
        tell: Callable[[str], None],
        check_first: Callable[[Any], None],
    ) -> None:
        self._server, self._poll, self._journal, self._tell = server, poll, journal, tell
        self._check_first = check_first
        self.waiting: dict[str, _Waiting] = {}  # by key
        self.results: list[Any] = []  # of measurements that have ended
        self._open: dict[str, _Open] = {}
        self._uploaded: set[str] = set()  # by this process
        self._asked: Counter[str] = Counter()
        self._size, self._one_by_one = MOST_REQUESTS, False
        self._error: Exception | None = None

    def ask(self, request: Request, read: Callable[[dict[str, Any]], Any]) -> _Waiting:
        """An awaitable: the answer to a request through `read`, after further attempts as in `Server.ask`."""
        _, body = self._server.body(request, left_out=frozenset())  # one key, whatever this process knows
        content = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:40]
        key = f"{content}-{self._asked[content]}"
        self._asked[content] += 1
        return _Waiting(key, request, read)

    def go_on(self, measurement: Measurement, answer: Any = None) -> None:
        """Let a measurement begin, or go on with an answer, up to its next question or its result."""
        try:
            waiting = measurement.send(answer)
        except StopIteration as end:
            self.results.append(end.value)
        else:
            waiting.measurement = measurement
            self.waiting[waiting.key] = waiting

    async def round(self, client: Any, wait: bool) -> bool:
        """Submit questions and fetch answers until there is a result; whether more is to be done, without `wait`.

        Raises the error of a measurement, or of the server; there may be results nevertheless.
        """
        while not self.results:
            if await self._submit(client):
                continue
            if not wait:
                return False
            await (self._look(client) if self._open else asyncio.sleep(PAUSE))
            if self._error is not None:
                raise self._error
        return True

    async def _submit(self, client: Any) -> bool:
        """Submit what no open batch holds; True if an answer came at once."""
        while left := [waiting for waiting in self.waiting.values() if waiting.file not in self._open]:
            async with self._journal.alone() as tables:
                self._share_refused(tables)
                if self._replied(tables):
                    return True
                for waiting in left:
                    found = tables.execute("SELECT file FROM requests WHERE key = ?", (waiting.key,)).fetchone()
                    waiting.file = found[0] if found and found[0] != waiting.lost else ""
                known = dict.fromkeys(waiting.file for waiting in left if waiting.file)
                if not known:
                    begun = "SELECT 1 FROM files UNION ALL SELECT 1 FROM checked_replies LIMIT 1"
                    if tables.execute(begun).fetchone() is None:
                        await self._try(client, max(left, key=lambda waiting: waiting.request.most.tokens_in), tables)
                        return True
                    part = self._portion(left)
                    if not part:
                        return False
                    path, _ = self._server.body(part[0].request)
                    bodies = {waiting.key: self._server.body(waiting.request)[1] for waiting in part}
                    file = await upload(self._server, client, path, bodies)
                    tables.execute("INSERT INTO files VALUES (?, NULL, '', ?)", (file, time.time()))
                    rows = [(waiting.key, file) for waiting in part]
                    tables.executemany("INSERT OR REPLACE INTO requests VALUES (?, ?)", rows)
                    self._uploaded.add(file)
                    for waiting in part:
                        waiting.file = file
                    known = {file: None}
            for file in known:
                await self._begin(client, file, [waiting for waiting in left if waiting.file == file])
        return False

    def _share_refused(self, tables: sqlite3.Connection) -> None:
        """Note fields that the service refuses, and learn those that any process found."""
        rows = [(field,) for field in self._server.left_out]
        tables.executemany("INSERT OR IGNORE INTO left_out VALUES (?)", rows)
        self._server.left_out |= {field for (field,) in tables.execute("SELECT field FROM left_out")}

    async def _try(self, client: Any, waiting: _Waiting, tables: sqlite3.Connection) -> None:
        """Ask a request at once: nothing is submitted to a server that can't measure."""
        reply, result = await self._server.ask(client, waiting.request, lambda reply: (reply, waiting.read(reply)))
        self._check_first(result)
        self._settle(waiting, result)
        row = waiting.key, json.dumps(reply)
        tables.execute("INSERT OR REPLACE INTO checked_replies VALUES (?, ?, ?)", (*row, checksum(*row)))
        self._share_refused(tables)

    def _replied(self, tables: sqlite3.Connection) -> bool:
        """Take replies to requests that were asked at once, perhaps by another process; whether one was waited for."""
        found = False
        for *row, known in tables.execute("SELECT * FROM checked_replies").fetchall():
            if known != checksum(*row):
                tables.execute("DELETE FROM checked_replies WHERE key IS ?", row[:1])
                warnings.warn("a damaged reply among the notes of batches was removed, to be asked again", stacklevel=2)
            elif waiting := self.waiting.get(row[0]):
                self._settle(waiting, waiting.read(json.loads(row[1])))
                found = True
        return found

    def _portion(self, left: Sequence[_Waiting]) -> Sequence[_Waiting]:
        """The first of these that may be in one batch; none while others must end first."""
        if self._one_by_one and self._open:
            return []
        size, n = 0, 0
        for waiting in left[: self._size]:
            size += len(json.dumps(self._server.body(waiting.request)[1])) + 200
            if n and size > MOST_BYTES:
                break
            n += 1
        return left[: self._server.meter.affordable([waiting.request.most for waiting in left[:n]])]

    async def _begin(self, client: Any, file: str, held: Sequence[_Waiting]) -> None:
        """Open the batch of an uploaded file."""
        if file in self._open:
            return
        path, _ = self._server.body(held[0].request)
        wait = None if file in self._uploaded else self._poll
        try:
            async with self._journal.alone() as tables:
                known = tables.execute("SELECT batch, ended FROM files WHERE file = ?", (file,)).fetchone()
                if known is None:  # another process was told that the batch is refused
                    return
                batch, end = known
                if batch is None:
                    batch = await begin(self._server, client, path, file, wait)
                    tables.execute("UPDATE files SET batch = ? WHERE file = ?", (batch, file))
        except RefusedFileError:
            async with self._journal.alone() as tables:
                _forget(tables, file)
            raise
        most = sum((waiting.request.most for waiting in held), NONE)
        self._server.meter.hold(most, len(held))
        self._open[file] = _Open(batch, bool(end), most)

    async def _look(self, client: Any) -> None:
        """Take the answers of batches that have ended; if none has, wait."""
        answered, total, ended = 0, 0, False
        for file, batch in list(self._open.items()):
            status = await look(self._server, client, batch.batch, str(self._journal.path or ""))
            if status.status in ENDED:
                await self._end(client, file, batch, status)
                ended = True
            answered, total = answered + status.answered, total + status.total
        now = time.strftime("%H:%M:%S")
        self._tell(f"{len(self._open)} batches, {answered:,} of {total:,} answered at {now}")
        if not ended:
            await asyncio.sleep(self._poll)

    async def _end(self, client: Any, file: str, batch: _Open, status: Status) -> None:
        server = self._server
        held = {waiting.key: waiting for waiting in self.waiting.values() if waiting.file == file}
        missing = await fetch(server, client, status, lambda line: self._take(line, batch, held))
        if missing:
            warnings.warn(
                f"{server.base_url}: {missing} of {status.answered} answers are missing in the files of "
                f"{batch.batch}, and are asked for again",
                stacklevel=2,
            )
        del self._open[file]
        server.meter.settle(batch.most, batch.used, rated=False)
        async with self._journal.alone() as tables:
            if status.status == "failed":  # before any request was answered
                _forget(tables, file)
            else:
                tables.execute("UPDATE files SET ended = ? WHERE file = ?", (status.status, file))
        if status.status == "failed":
            said = f"{server.base_url} refuses {batch.batch} ({server.said(Exception(status.said))})"
            if not status.full:
                raise InputError(f"model = {server.model}: {said}")
            if len(held) == 1 and not self._open:
                raise ServerError(said)
            # The server has no room for so many.
            self._size, self._one_by_one = max(1, len(held) // 2), True
            for waiting in held.values():
                waiting.file = ""
            return
        for waiting in [waiting for key, waiting in held.items() if key in self.waiting]:
            # The request waits for another answer, unless its attempts are used up.
            said = batch.failures.get(waiting.key, f"{batch.batch} is {status.status}, without an answer")
            waiting.lost = file
            waiting.tries += file in self._uploaded
            if waiting.tries <= server.max_retries:
                server.retries += 1
            else:
                failed = f"{server.base_url} failed {waiting.tries} times in a row for {server.model}"
                self._fail(waiting, ServerError(f"{failed}; the last time: {said}"))
        if status.status == "cancelled" and not batch.known_end:
            raise ServerError(
                f"{server.base_url}: {batch.batch} was cancelled; its answers are kept, and the same call "
                "submits the other requests again"
            )

    def _take(self, line: Mapping[str, Any], batch: _Open, held: Mapping[str, _Waiting]) -> bool:
        """Take a line; whether it holds an answer."""
        server, key, response = self._server, line.get("custom_id"), dict_of(line.get("response"))
        status, body = response.get("status_code"), response.get("body")
        is_answer = isinstance(key, str) and status == 200 and isinstance(body, dict)
        waiting = held.get(key) if isinstance(key, str) and key in self.waiting else None
        if waiting is None:
            return is_answer
        if is_answer:
            try:
                result = server.accepted(body, waiting.read)
            except UnusableReplyError as error:
                # Another line may have the answer: ids can come twice.
                batch.failures[waiting.key] = server.said(error)
            else:
                batch.used += usage_of(body) or waiting.request.most
                self._settle(waiting, result)
            return True
        told = line.get("error") or body
        told = dict_of(dict_of(told).get("error", told))
        said = server.said(Exception(f"HTTP {status}: {told.get('message')}"))
        refused = type(status) is int and 400 <= status < 500 and not may_pass(status, told.get("code"))
        if refused and not batch.known_end:  # a refused batch is asked about again
            refusal = f"model = {server.model}: {server.base_url} refuses the request ({said})"
            self._fail(waiting, InputError(refusal))
        else:
            batch.failures[waiting.key] = said
        return False

    def _settle(self, waiting: _Waiting, answer: Any) -> None:
        del self.waiting[waiting.key]
        self.go_on(waiting.measurement, answer)

    def _fail(self, waiting: _Waiting, error: Exception) -> None:
        del self.waiting[waiting.key]
        self._error = self._error or error


def _forget(tables: sqlite3.Connection, file: str) -> None:
    """Remove a file whose batch was refused, so that its requests are new again."""
    tables.execute("DELETE FROM requests WHERE file = ?", (file,))
    tables.execute("DELETE FROM files WHERE file = ?", (file,))
