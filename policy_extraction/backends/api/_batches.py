"""Requests that are left with a server in batches and fetched when they are answered."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from meanfield import InputError
from policy_extraction.backends.api._batch_wire import RefusedFileError, Status, begin, fetch, look, upload
from policy_extraction.backends.api._errors import ServerError, may_pass
from policy_extraction.backends.api._journal import Journal
from policy_extraction.backends.api._limits import Usage, plus
from policy_extraction.backends.api._reply import UnusableReplyError, usage_of
from policy_extraction.backends.api._request import Request
from policy_extraction.backends.api._retries import PAUSE, Server

MOST_REQUESTS = 50_000  # in a batch of OpenAI's
MOST_BYTES = 100 * 2**20  # OpenAI takes 200 MB
NONE = Usage(0, 0)

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
        self._waiting: dict[str, _Waiting] = {}
        self._open: dict[str, _Open] = {}
        self._uploaded: set[str] = set()  # by this process
        self._asked: Counter[str] = Counter()
        self._size, self._one_by_one = MOST_REQUESTS, False
        self._results: list[Any] = []
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
            self._results.append(end.value)
        else:
            waiting.measurement = measurement
            self._waiting[waiting.key] = waiting

    @property
    def left(self) -> bool:
        """Whether a measurement waits."""
        return bool(self._waiting)

    def taken(self) -> list[Any]:
        """The results since the last call."""
        results, self._results = self._results, []
        return results

    async def round(self, client: Any, wait: bool) -> bool:
        """Submit what is asked and fetch answers, until there is a result; whether without `wait` more is to be done.

        Raises the error of a measurement, or of the server; there may be results nevertheless.
        """
        while not self._results:
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
        while left := [waiting for waiting in self._waiting.values() if waiting.file not in self._open]:
            async with self._journal.alone() as notes:
                self._server.left_out |= notes.refused(self._server.left_out)
                if self._replied(notes.replies()):
                    return True
                found = notes.files(waiting.key for waiting in left)
                for waiting in left:
                    file = found.get(waiting.key, "")
                    waiting.file = "" if file == waiting.lost else file
                known = dict.fromkeys(waiting.file for waiting in left if waiting.file)
                if not known:
                    if notes.empty():
                        first = max(left, key=lambda waiting: waiting.request.most.tokens_in)
                        notes.replied(first.key, await self._try(client, first))
                        notes.refused(self._server.left_out)
                        return True
                    part = self._portion(left)
                    if not part:
                        return False
                    path, _ = self._server.body(part[0].request)
                    bodies = {waiting.key: self._server.body(waiting.request)[1] for waiting in part}
                    file = await upload(self._server, client, path, bodies)
                    notes.uploaded(file, (waiting.key for waiting in part))
                    self._uploaded.add(file)
                    for waiting in part:
                        waiting.file = file
                    known = {file: None}
            for file in known:
                await self._begin(client, file, [waiting for waiting in left if waiting.file == file])
        return False

    async def _try(self, client: Any, waiting: _Waiting) -> str:
        """The reply to a request that is asked at once: nothing is submitted to a server that can't measure."""
        reply, result = await self._server.ask(client, waiting.request, lambda reply: (reply, waiting.read(reply)))
        self._check_first(result)
        self._settle(waiting, result)
        return json.dumps(reply)

    def _replied(self, replies: Mapping[str, str]) -> bool:
        """Take replies to requests that were asked at once, perhaps by another process; whether one was waited for."""
        found = [self._waiting[key] for key in replies if key in self._waiting]
        for waiting in found:
            self._settle(waiting, waiting.read(json.loads(replies[waiting.key])))
        return bool(found)

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
        try:
            async with self._journal.alone() as notes:
                known = notes.state(file)
                if known is None:  # another process was told that the batch is refused
                    return
                batch, end = known
                if batch is None:
                    batch = await begin(
                        self._server, client, path, file, None if file in self._uploaded else self._poll
                    )
                    notes.begun(file, batch)
        except RefusedFileError:
            async with self._journal.alone() as notes:
                notes.forget(file)
            raise
        most = reduce(plus, (waiting.request.most for waiting in held))
        self._server.meter.hold(most, len(held))
        self._open[file] = _Open(batch, bool(end), most)

    async def _look(self, client: Any) -> None:
        """Take the answers of batches that have ended; if none has, wait."""
        answered, total, ended = 0, 0, False
        for file, batch in list(self._open.items()):
            status = await look(self._server, client, batch.batch, str(self._journal.path or ""))
            if status.ended:
                await self._end(client, file, batch, status)
                ended = True
            answered, total = answered + status.answered, total + status.total
        now = time.strftime("%H:%M:%S")
        self._tell(f"{len(self._open)} batches, {answered:,} of {total:,} answered at {now}")
        if not ended:
            await asyncio.sleep(self._poll)

    async def _end(self, client: Any, file: str, batch: _Open, status: Status) -> None:
        held = {waiting.key: waiting for waiting in self._waiting.values() if waiting.file == file}
        missing = await fetch(self._server, client, status, lambda line: self._take(line, batch, held))
        if missing:
            warnings.warn(
                f"{self._server.base_url}: {missing} of {status.answered} answers are missing in the files of "
                f"{batch.batch}, and are asked for again",
                stacklevel=2,
            )
        del self._open[file]
        self._server.meter.settle(batch.most, batch.used, rated=False)
        async with self._journal.alone() as notes:
            if status.status == "failed":  # before any request was answered
                notes.forget(file)
            else:
                notes.ended(file, status.status)
        if status.status == "failed":
            self._refused(batch, status, held)
            return
        for key, waiting in held.items():
            if key in self._waiting:
                waiting.lost = file
                lost = f"{batch.batch} is {status.status}, without an answer"
                self._ask_again(waiting, batch.failures.get(key, lost))
        if status.status == "cancelled" and not batch.known_end:
            raise ServerError(
                f"{self._server.base_url}: {batch.batch} was cancelled; its answers are kept, and the same call "
                "submits the other requests again"
            )

    def _refused(self, batch: _Open, status: Status, held: Mapping[str, _Waiting]) -> None:
        """Halve the batches if the server has no room for this one; else raise."""
        said = f"{self._server.base_url} refuses {batch.batch} ({self._server.said(Exception(status.said))})"
        if not status.full:
            raise InputError(f"model = {self._server.model}: {said}")
        if len(held) == 1 and not self._open:
            raise ServerError(said)
        self._size, self._one_by_one = max(1, len(held) // 2), True
        for waiting in held.values():
            waiting.file = ""

    def _take(self, line: Mapping[str, Any], batch: _Open, held: Mapping[str, _Waiting]) -> bool:
        """Take a line; whether it holds an answer."""
        key, response = line.get("custom_id"), line.get("response")
        response = response if isinstance(response, dict) else {}
        status, body = response.get("status_code"), response.get("body")
        answer = body if status == 200 and isinstance(body, dict) else None
        waiting = held.get(key) if isinstance(key, str) else None
        if waiting is not None and key in self._waiting:
            if answer is None:
                self._take_error(waiting, batch, status, line.get("error") or body)
            else:
                self._take_answer(waiting, batch, answer)
        return answer is not None and isinstance(key, str)

    def _take_answer(self, waiting: _Waiting, batch: _Open, answer: dict[str, Any]) -> None:
        try:
            result = self._server.accepted(answer, waiting.read)
        except UnusableReplyError as error:
            # Another line may have the answer: ids can come twice.
            batch.failures[waiting.key] = self._server.said(error)
        else:
            batch.used = plus(batch.used, usage_of(answer) or waiting.request.most)
            self._settle(waiting, result)

    def _take_error(self, waiting: _Waiting, batch: _Open, status: object, told: object) -> None:
        told = told.get("error", told) if isinstance(told, dict) else {}
        told = told if isinstance(told, dict) else {}
        said = self._server.said(Exception(f"HTTP {status}: {told.get('message')}"))
        code = status if type(status) is int else 0
        refused = 400 <= code < 500 and not may_pass(code, told.get("code"))
        if refused and not batch.known_end:  # what was told once is asked again
            self._fail(
                waiting,
                InputError(f"model = {self._server.model}: {self._server.base_url} refuses the request ({said})"),
            )
        else:
            batch.failures[waiting.key] = said

    def _ask_again(self, waiting: _Waiting, said: str) -> None:
        """Let a request without a usable answer wait for another one, unless its attempts are used up."""
        server = self._server
        waiting.tries += waiting.file in self._uploaded
        if waiting.tries <= server.max_retries:
            server.retries += 1
            return
        failed = f"{server.base_url} failed {waiting.tries} times in a row for {server.model}; the last time: {said}"
        self._fail(waiting, ServerError(failed))

    def _settle(self, waiting: _Waiting, answer: Any) -> None:
        del self._waiting[waiting.key]
        self.go_on(waiting.measurement, answer)

    def _fail(self, waiting: _Waiting, error: Exception) -> None:
        del self._waiting[waiting.key]
        self._error = self._error or error
