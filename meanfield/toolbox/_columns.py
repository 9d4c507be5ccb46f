"""Datasets from columns with long names and units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr

Columns = Mapping[str, tuple]


def labelled(columns: Columns, coords: Mapping[str, Any] | None = None) -> xr.Dataset:
    """A Dataset of columns {name: (dims, values, long_name)} or (dims, values, long_name, units), units else '1'."""
    data = {}
    for name, (dims, values, long_name, *units) in columns.items():
        data[name] = (dims, values, {"long_name": long_name, "units": units[0] if units else "1"})
    return xr.Dataset(data, coords=coords)
