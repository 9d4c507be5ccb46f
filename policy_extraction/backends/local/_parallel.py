"""Several passes at a time on the CPU, each on its share of the threads.

The many small operations of a pass scale badly with threads: two passes on one thread each were measured to be 1.5
times as fast as one after the other on two.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

_HERE = threading.local()


class AbandonedError(Exception):
    """Nobody waits for this work any more."""


def check_awaited() -> None:
    """Ends the work of a thread that nobody waits for any more, as after Ctrl-C; called often in long work."""
    abandoned: threading.Event | None = getattr(_HERE, "abandoned", None)
    if abandoned is not None and abandoned.is_set():
        raise AbandonedError


def in_order(work: Callable[[Any], Any], items: Iterable[Any], workers: int) -> Generator[Any, None, None]:
    """work(item) of each item, in the order of the items, `workers` at a time."""
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
