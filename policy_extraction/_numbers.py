"""Numbers that are given as arguments, checked."""

from __future__ import annotations

import sys

import numpy as np

from meanfield import InputError
from policy_extraction._texts import shown

LARGEST_SEED = 2**63 - 1  # what NetCDF attrs hold
MANY = 1_000_000  # of anything that a language model is asked for


def check_integer(name: str, value: object, *, least: int, most: int = MANY) -> None:
    """InputError unless it is a whole number in this range."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not least <= value <= most:
        raise InputError(f"{name} = {shown(value)}: expected a whole number, at least {least} and at most {most}")


def check_number(name: str, value: object) -> None:
    """InputError unless it is a finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= sys.float_info.max:
        raise InputError(f"{name} = {shown(value)}: expected a finite number, at least 0")
