"""Concurrent requests, for callers without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
LOOK = 0.2  # seconds
Job = Callable[[Any], Awaitable[T]]


def each(open_client: Callable[[], Any], jobs: Iterable[Job[T]], concurrency: int) -> Iterator[T]:
    """Results of all jobs as they come, `concurrency` at a time, from a thread that ends with this iterator.

    An interrupt drops the requests in flight. If a job fails, the results of those in flight come before its error.
    """
    results: SimpleQueue[tuple[str, Any]] = SimpleQueue()
    loop = asyncio.new_event_loop()
    work = loop.create_task(_work(open_client, iter(jobs), concurrency, results))
    begun, dropped = threading.Event(), threading.Event()

    def run() -> None:
        begun.set()
        end: tuple[str, Any] = ("end", None)
        if dropped.is_set():
            work.cancel()
        try:
            loop.run_until_complete(work)
        except asyncio.CancelledError:
            pass
        except Exception as error:
            end = ("error", error)
        finally:
            loop.run_until_complete(loop.shutdown_default_executor())  # threads that looked up addresses
            loop.close()
            results.put(end)

    thread = threading.Thread(target=run, name="requests", daemon=True)
    try:
        thread.start()
        while True:
            try:
                kind, what = results.get(timeout=LOOK)  # on Windows an endless wait does not hear Ctrl-C
            except Empty:
                continue
            if kind == "error":
                raise what
            if kind == "end":
                return
            yield what
    finally:
        dropped.set()  # an interrupt may come while the thread starts, which then drops the work itself
        if begun.wait(LOOK):
            with suppress(RuntimeError):  # the loop is closed once the work is done
                loop.call_soon_threadsafe(work.cancel)
            thread.join()


async def _work(
    open_client: Callable[[], Any], jobs: Iterator[Job[T]], concurrency: int, results: SimpleQueue[tuple[str, Any]]
) -> None:
    failures: list[Exception] = []

    async def worker(client: Any) -> None:
        for job in jobs:
            if failures:
                return
            try:
                results.put(("result", await job(client)))
            except Exception as error:
                failures.append(error)

    async with open_client() as client, asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(worker(client))
    if failures:
        raise failures[0]
