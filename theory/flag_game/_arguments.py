"""Checks of arguments that several parts of the game need."""

from __future__ import annotations

from collections import Counter

import xarray as xr

from meanfield import InputError
from meanfield.toolbox import whole_number


def two_whole_numbers(name: str, value: object) -> tuple[int, int]:
    """(width, height), both at least 1."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise InputError(f"{name} = {value!r}: expected (width, height)")
    return whole_number(f"width of {name}", value[0], 1), whole_number(f"height of {name}", value[1], 1)


def check_country(name: str, country: str, compatibility: xr.DataArray) -> str:
    """`country`; InputError if it is not in `compatibility`."""
    known = [str(one) for one in compatibility["country"].values]
    if country not in known:
        raise InputError(f"{name} = {country!r}: expected one of {', '.join(known)}")
    return country


def places(name: str, over_crops: xr.DataArray) -> list[tuple[int, int]]:
    """(left, top) of each crop; InputError if they are missing or two are the same."""
    if not {"left", "top"} <= set(over_crops.coords):
        raise InputError(f"{name}: expected coordinates left and top over crop")
    found = [(int(left), int(top)) for left, top in zip(*(over_crops[c].values for c in ("left", "top")), strict=True)]
    (left, top), times = Counter(found).most_common(1)[0]
    if times > 1:
        raise InputError(f"{name} has {times} crops at left = {left}, top = {top}: expected one")
    return found
