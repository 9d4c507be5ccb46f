"""Reads a NetCDF file to its end: a script, run where the library may hang or die without harm.

`python _netcdf_trial.py PATH` ends with 0 if all could be read, else with a reason on stderr.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import h5netcdf
import h5py

MEMORY = 2**30  # bytes that reading may take, beside what the file declares
ROOM = 2**26  # bytes that any file may declare
UNPACKED = 50  # bytes that a file may declare for each that it has


def check_declared_size(path: Path) -> None:
    """Raises ValueError if the arrays in the file are far larger than the file, as when they were never written."""
    most = ROOM + UNPACKED * path.stat().st_size
    with h5py.File(path, "r") as file:
        size = sum(math.prod(array.shape or ()) * array.dtype.itemsize for array in _arrays(file))
    if size > most:
        raise ValueError(f"it declares {size} bytes: expected at most {most} in a file of its size")


def _arrays(group: h5py.Group) -> Iterator[h5py.Dataset]:
    """Those that are read: of the root."""
    for name in group:
        if isinstance(array := group.get(name), h5py.Dataset):
            yield array


def _read_all(path: Path) -> None:
    with h5netcdf.File(path, "r", phony_dims="access", decode_vlen_strings=True) as file:
        dict(file.attrs)
        for variable in file.variables.values():
            dict(variable.attrs)
            variable[...]


def main() -> None:
    path = Path(sys.argv[1])
    with contextlib.suppress(ImportError, OSError, ValueError):  # where the system knows no such limit
        import resource

        limit = MEMORY + UNPACKED * path.stat().st_size
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        check_declared_size(path)
        _read_all(path)
    except Exception as error:
        print(" ".join(f"{type(error).__name__} {error}".split())[:200], file=sys.stderr)
        os._exit(1)  # closing what is damaged may raise again


if __name__ == "__main__":
    main()
