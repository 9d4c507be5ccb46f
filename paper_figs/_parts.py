"""Several results in one Dataset, so that a figure has one file of numbers."""

from __future__ import annotations

import xarray as xr


def together(**parts: xr.Dataset) -> xr.Dataset:
    """All parts in one Dataset; names of variables, dims and attrs begin with the name of their part."""
    renamed = [_renamed(one, f"{name}.", "") for name, one in parts.items()]
    attrs = {name: value for one in renamed for name, value in one.attrs.items()}
    return xr.merge(renamed, combine_attrs="drop").assign_attrs(attrs)


def part(numbers: xr.Dataset, name: str) -> xr.Dataset:
    """One of them, as it was."""
    start = f"{name}."
    others = [one for one in numbers.variables if not str(one).startswith(start)]
    return _renamed(numbers.drop_vars(others), "", start)


def _renamed(one: xr.Dataset, before: str, without: str) -> xr.Dataset:
    """With another start of the names; attrs whose names do not start with `without` are left out."""
    names = {name: f"{before}{str(name).removeprefix(without)}" for name in {*one.variables, *one.dims}}
    kept = {str(key): value for key, value in one.attrs.items() if str(key).startswith(without)}
    attrs = {f"{before}{key.removeprefix(without)}": value for key, value in kept.items()}
    return one.rename(names).drop_attrs(deep=False).assign_attrs(attrs)
