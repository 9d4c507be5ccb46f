"""Concurrent passes on the CPU, each on its share of the threads.

The many small operations of a pass scale badly with threads: two concurrent passes on one thread each were 1.5 times as
fast as two successive ones on two threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


def in_order(work: Callable[[Any], Any], items: Iterable[Any], workers: int) -> Generator[Any, None, None]:
    """work(item) of each item in the order of the items, by `workers` threads; Ctrl-C waits for those that run."""
    import torch

    if workers == 1:
        yield from map(work, items)
        return
    threads = torch.get_num_threads()
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=[max(1, threads // workers)]) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(threads)
