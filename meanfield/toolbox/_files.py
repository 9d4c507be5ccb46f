"""Results and policies as NetCDF files."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr

from meanfield.toolbox._arguments import shown
from meanfield.toolbox._errors import InputError, reason

CHECKSUM = b"\nmeanfield: SHA-256 of the bytes before this line: %s\n"
CHECKSUM_LENGTH = len(CHECKSUM % bytes(64))
ROOM, UNPACKED = 2**26, 50  # bytes that any file may declare, and that it may declare for each byte that it has
TABLES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".tex", ".xlsx")
TABLE_HINT = "; meanfield.make_policy takes tables of probabilities, meanfield.datasets.from_events logs"
HELD = 0.0 if os.name == "posix" else 2.0  # seconds for which a file that another process reads can't be replaced


def check_writable(path: str | os.PathLike[str]) -> Path:
    """`path` as a Path if a file can be written there, else InputError: a check before long work."""
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str) or "\0" in name:
        raise InputError(f"path = {path!r}: expected the name of a file, a text or a pathlib.Path")
    path = Path(name)
    check_working_folder("path", path)
    try:
        parent, folder = path.parent.is_dir(), path.is_dir()
    except OSError as error:
        raise InputError(f"path = {path}: {error.strerror}") from None
    if not parent:
        raise InputError(f"path = {path}: the folder {path.parent} does not exist")
    if folder:
        raise InputError(f"path = {path}: it is a folder, expected the name of a file")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"path = {path}: the folder {path.parent} can't be written to")
    return path


def path_of(path: str | os.PathLike[str], name: str = "path") -> Path:
    """`path` as a Path, else InputError; `name` is the argument's."""
    try:
        found = Path(path)
        found.is_file()
        if "\0" in str(found):
            raise ValueError("embedded null byte")
    except (TypeError, ValueError, OSError) as error:  # no path, one with a NUL, one that is too long
        raise InputError(f"{name} = {shown(path)}: expected the name of a file ({reason(error)})") from None
    return found


def existing_file(path: str | os.PathLike[str], name: str = "path") -> Path:
    """`path` as a Path if a file is there, else InputError; `name` is the argument's."""
    found = path_of(path, name)
    if found.is_file():
        return found
    if not found.is_dir():
        raise InputError(f"{name} = {found}: there is no such file")
    raise InputError(f"{name} = {found}: it is a folder, expected the name of a file")


def check_working_folder(name: str, path: Path) -> None:
    """InputError if `path` is relative to a working folder that was deleted; `name` is the argument's."""
    try:
        path.absolute()
    except FileNotFoundError:
        raise InputError(f"{name} = {path}: the working folder was deleted, change to another") from None


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path with the same ending, which becomes `path` if the block succeeds and vanishes otherwise."""
    path = check_writable(path)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        temporary = Path(folder) / path.name
        yield temporary
        _replace(path, temporary)


def _replace(path: Path, temporary: Path) -> None:
    """Windows refuses while the file is open elsewhere, as in a virus scanner, which closes it soon."""
    end = time.monotonic() + HELD
    while True:
        try:
            temporary.replace(path)
            return
        except PermissionError:
            if time.monotonic() >= end:
                raise
        time.sleep(0.05)


def save(dataset: xr.Dataset, path: str | os.PathLike[str], encoding: dict[str, dict[str, Any]] | None = None) -> Path:
    """Write a Dataset to a NetCDF file, whole or not at all, and return the path.

    The last line of the file, which NetCDF libraries skip, is a checksum of the bytes before it. `encoding` is by
    variable, as in `xarray.Dataset.to_netcdf`.

    Raises
    ------
    InputError
        If `dataset` is not a Dataset, `path` can't be written, or NetCDF can't hold the attributes or values.

    See Also
    --------
    load : the other way

    Examples
    --------
    >>> import tempfile
    >>> solution = meanfield.solve(meanfield.datasets.smollm2().sel(pair="his/her"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = meanfield.save(solution, f"{folder}/solution.nc")
    ...     meanfield.load(path).attrs["kind"]
    'solution'
    """
    if not isinstance(dataset, xr.Dataset):
        raise InputError(f"dataset = {shown(dataset)}: expected a Dataset")
    with whole_file(path) as temporary:
        if temporary.suffix.lower() in TABLES:
            raise InputError(f"path = {path}: expected a name that ends with .nc; result.to_dataframe() makes a table")
        # An encoding that came from another file would cut longer strings to the length that they had there.
        try:
            dataset.drop_encoding().to_netcdf(temporary, engine="h5netcdf", encoding=encoding)
        except (TypeError, ValueError) as error:
            raise InputError(f"dataset: expected values that NetCDF can hold ({reason(error)})") from None
        digest = _digest(temporary, temporary.stat().st_size)
        with temporary.open("ab") as file:
            file.write(CHECKSUM % digest)
    return Path(path)


def load(path: str | os.PathLike[str]) -> xr.Dataset:
    """Read a Dataset from a NetCDF file into memory.

    The checksum of a file from `save` guards against damage, not against intent. A file of another program has none;
    the HDF5 library opens it in this process, and may crash or hang on a damaged one.

    Raises
    ------
    InputError
        If there is no such file, it is not NetCDF or is damaged, or its arrays are far larger than the file: more than
        64 MiB and 50 times its size.

    See Also
    --------
    load_policy : with the checks of a policy
    save : the other way

    Examples
    --------
    >>> import tempfile
    >>> solution = meanfield.solve(meanfield.datasets.smollm2().sel(pair="his/her"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = meanfield.save(solution, f"{folder}/solution.nc")
    ...     meanfield.load(path).equals(solution)
    True
    """
    path = existing_file(path)
    try:
        _check_checksum(path)
        _check_declared_size(path)
        dataset = xr.load_dataset(path, engine="h5netcdf")
    except Exception as error:  # the libraries raise almost anything
        hint = TABLE_HINT if path.suffix.lower() in TABLES else ""
        raise InputError(
            f"path = {path}: expected a NetCDF file, and it can't be read ({reason(error)}){hint}"
        ) from None
    return _with_missing_strings(dataset.drop_encoding())


def _check_checksum(path: Path) -> None:
    """ValueError if the file ends with a checksum, which files of other programs don't, and it is wrong."""
    length = max(path.stat().st_size - CHECKSUM_LENGTH, 0)
    with path.open("rb") as file:
        file.seek(length)
        last = file.read()
    if last.startswith(CHECKSUM[: -len(b"%s\n")]) and last != CHECKSUM % _digest(path, length):
        raise ValueError("it is damaged: its bytes differ from the saved ones")


def _digest(path: Path, length: int) -> bytes:
    """SHA-256 of the first `length` bytes, hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while length > 0:
            piece = file.read(min(length, 2**20))
            digest.update(piece)
            length -= len(piece)
    return digest.hexdigest().encode()


def _check_declared_size(path: Path) -> None:
    """ValueError if the arrays in the file are far larger than the file, for example if they were never written."""
    most = ROOM + UNPACKED * path.stat().st_size
    with h5py.File(path, "r") as file:
        size = sum(array.nbytes for array in file.values() if isinstance(array, h5py.Dataset))
    if size > most:
        raise ValueError(f"it declares {size} bytes: expected at most {most} in a file of its size")


def _with_missing_strings(dataset: xr.Dataset) -> xr.Dataset:
    """Restore None for '' in variables with the attr `missing`, since NetCDF has no missing string."""
    for name, variable in dataset.data_vars.items():
        if np.array_equal(variable.attrs.get("missing"), ""):
            values = variable.values.astype(object)
            values[values == ""] = None
            dataset[name] = variable.copy(data=values)
    return dataset
