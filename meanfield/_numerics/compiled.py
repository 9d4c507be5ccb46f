"""Compiled loops, and rows of work shared among threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, no_type_check

import numpy as np
from numba import get_num_threads, njit

WORTH = 2**18  # numbers that repay a thread; to start one costs as much as a quarter of them
TOGETHER = 2**16  # numbers that a thread works on between looks at whether it is to stop


def compiled(function: Callable | None = None, **options: Any) -> Callable:
    """Compile a function of arrays on its first call; cached for later processes if a folder is writable."""
    if function is None:
        return partial(compiled, **options)
    options = {"error_model": "numpy", "nogil": True, **options}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the user's can be written
        return njit(**options)(function)


def inner(function: Callable) -> Callable:
    """`compiled` for calls from compiled functions alone, without the means of calls from Python and from C.

    That takes a sixth of the time.
    """
    return compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@compiled
@no_type_check
def copy_to(target, source):
    """Write the start of `source` into `target`, of one dimension.

    For `target[:] = source` numba also compiles the text of the error of unequal shapes, which takes seconds.
    """
    for i in range(target.size):
        target[i] = source[i]


@compiled
@no_type_check
def summed(table):
    """Σ_a table[a, b]; numba would take seconds to compile table.sum(0), also for the text of an error."""
    out = np.zeros(table.shape[1], table.dtype)
    for a in range(table.shape[0]):
        for b in range(table.shape[1]):
            out[b] += table[a, b]
    return out


def in_threads(function: Callable[[slice], None], n_rows: int, numbers: int, most: int | None = None) -> None:
    """Call `function` on slices that cover `n_rows` rows, in as many threads as numba has where that pays.

    `numbers` is the size of one row, which determines the length of the slices; `most` limits the threads.
    """
    size = max(1, TOGETHER // max(1, numbers))
    rows = [slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]
    threads = min(len(rows), n_rows * numbers // WORTH, get_num_threads(), most or len(rows))
    if threads <= 1:
        for part in rows:
            function(part)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(function, rows))
