"""Compiled functions that other compiled functions call, and Python never."""

from __future__ import annotations

from functools import partial

from numba import njit

# Numba compiles each function three times, twice for calls from Python and C, which takes a sixth of the time in all.
inner = partial(njit, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
