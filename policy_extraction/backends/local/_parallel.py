"""Concurrent passes on the CPU, each on its share of the threads.

The many small operations of a pass scale badly with threads: two concurrent passes on one thread each were 1.5 times as
fast as two successive ones on two threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

_HERE = threading.local()


class AbandonedError(Exception):
    """Nobody waits for this work any longer."""


def check_awaited() -> None:
    """End the work of this thread if nobody waits for it, as after Ctrl-C; long work calls this often."""
    abandoned: threading.Event | None = getattr(_HERE, "abandoned", None)
    if abandoned is not None and abandoned.is_set():
        raise AbandonedError


def in_order(work: Callable[[Any], Any], items: Iterable[Any], workers: int) -> Generator[Any, None, None]:
    """work(item) of each item in the order of the items, by `workers` threads."""
    import torch

    if workers == 1:
        yield from map(work, items)
        return
    threads = torch.get_num_threads()
    abandoned = threading.Event()

    def begin() -> None:
        torch.set_num_threads(max(1, threads // workers))
        _HERE.abandoned = abandoned

    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(workers, initializer=begin) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            abandoned.set()
            for future in waiting:
                future.cancel()
            pool.shutdown()
            torch.set_num_threads(threads)
