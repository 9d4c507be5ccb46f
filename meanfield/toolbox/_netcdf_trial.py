"""Script that reads a NetCDF file to its end, in a process that may hang or die without harm.

`python _netcdf_trial.py PATH` exits with 0 if everything could be read, else with a reason on stderr.
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
A_STRING = 64  # bytes that even an empty string takes in memory
UNPACKED = 50  # bytes that a file may declare for each that it has


def check_declared_size(path: Path) -> None:
    """ValueError if the arrays in the file are far larger than the file, for example if they were never written."""
    most = ROOM + UNPACKED * path.stat().st_size
    with h5py.File(path, "r") as file:
        size = sum(math.prod(array.shape or ()) * _bytes_an_entry(array) for array in _arrays(file))
    if size > most:
        raise ValueError(f"it declares {size} bytes: expected at most {most} in a file of its size")


def _bytes_an_entry(array: h5py.Dataset) -> int:
    if array.dtype.kind != "O":
        return array.dtype.itemsize
    unwritten = array.fillvalue
    return A_STRING + (len(unwritten) if isinstance(unwritten, (bytes, str)) else 0)


def may_hold_more(path: Path) -> bool:
    """Whether strings shared by many entries may be far larger than the file; unwritten entries share one."""
    most = ROOM + UNPACKED * path.stat().st_size
    with h5py.File(path, "r") as file:
        shapes = [array.shape or () for array in _arrays(file) if array.dtype.kind == "O"]
    return sum(map(math.prod, shapes)) * path.stat().st_size > most


def _arrays(group: h5py.Group) -> Iterator[h5py.Dataset]:
    """The arrays of the root group, which are those that are read."""
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
