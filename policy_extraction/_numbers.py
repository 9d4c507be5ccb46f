"""Numbers that are given as arguments, checked."""

from __future__ import annotations

import math

import numpy as np

from meanfield import InputError

LARGEST_SEED = 2**63 - 1  # what NetCDF attrs hold


def check_integer(name: str, value: object, *, least: int, most: int | None = None) -> None:
    """InputError unless it is a whole number in this range."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least or value > (most or value):
        limit = f"at least {least}" if most is None else f"{least} to {most}"
        raise InputError(f"{name} = {value!r}: expected a whole number, {limit}")


def check_number(name: str, value: object) -> None:
    """InputError unless it is a finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise InputError(f"{name} = {value!r}: expected a finite number, at least 0")
