"""Linear algebra on one thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

_lock, _limits = threading.Lock(), []  # one entry for each caller inside; the first one's is the limit
_libraries = cache(ThreadpoolController)  # those loaded at the first call: to look for them takes 10 ms


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread, whoever calls it, until the last of several threads has left.

    On a busy machine threads that wait for each other make hundreds of small factorisations ten times slower.
    """
    with _lock:
        _limits.append(None if _limits else _libraries().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            if len(_limits) == 1:
                _limits[0].restore_original_limits()
            _limits.pop()
