"""Rows of work shared out among threads, for compiled loops that let others run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from numba import get_num_threads

TOGETHER = 2**13  # numbers that a thread works on between looks at whether it is to stop


def in_threads(function: Callable[[slice], None], n_rows: int, numbers: int) -> None:
    """Call it for all rows, a few at a time, by as many threads as numba has where that is worth it.

    Parameters
    ----------
    function
        Takes a slice of the rows.
    n_rows
        How many there are.
    numbers
        Of one row, by which to tell how many are a few.
    """
    size = max(1, TOGETHER // numbers)
    rows = [slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]
    if len(rows) == 1:
        function(rows[0])
        return
    with ThreadPoolExecutor(get_num_threads()) as pool:
        list(pool.map(function, rows))
