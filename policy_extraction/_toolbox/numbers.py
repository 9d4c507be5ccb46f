"""Numbers that are given as arguments, checked."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np

from meanfield import InputError
from policy_extraction._toolbox.texts import shown

LARGEST_SEED = 2**63 - 1  # what NetCDF attrs hold
MANY = 1_000_000  # of anything that a language model is asked for


def check_integer(name: str, value: object, *, least: int, most: int = MANY) -> None:
    """InputError unless it is a whole number in this range."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not least <= value <= most:
        raise InputError(f"{name} = {shown(value)}: expected a whole number, {least} to {most}")


def is_number(value: object) -> bool:
    """Whether it is a finite number, and not a whole one that no float can be."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def check_number(name: str, value: object) -> None:
    """InputError unless it is a finite number of at least 0."""
    if not isinstance(value, (int, float)) or not is_number(value) or value < 0:
        raise InputError(f"{name} = {shown(value)}: expected a finite number, at least 0")
