"""Compiled loops, and rows of work that threads share out among each other while these run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from numba import get_num_threads, njit

TOGETHER = 2**13  # numbers that a thread works on between looks at whether it is to stop


def compiled(function: Callable) -> Callable:
    """Compile a function of arrays when it is first called; kept for later processes where a folder can be written."""
    options = {"error_model": "numpy", "nogil": True}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the user's can be written
        return njit(**options)(function)


def in_threads(function: Callable[[slice], None], n_rows: int, numbers: int, most: int | None = None) -> None:
    """Call it for all rows, a few at a time, by as many threads as numba has where that is worth it.

    Parameters
    ----------
    function
        Takes a slice of the rows.
    n_rows
        How many there are.
    numbers
        Of one row, by which to tell how many are a few.
    most
        Of threads.
    """
    size = max(1, TOGETHER // numbers)
    rows = [slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]
    threads = min(len(rows), get_num_threads(), most or len(rows))
    if threads == 1:
        for part in rows:
            function(part)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(function, rows))
