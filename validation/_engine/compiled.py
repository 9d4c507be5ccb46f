"""Compiled functions that other compiled functions call, and Python never."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def inner(function: Callable[..., Any]) -> Any:
    """`njit`, but not compiled again for calls from Python and from C, which takes a sixth of the time."""
    return njit(cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
