"""Results and policies as NetCDF files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import xarray as xr

from meanfield._errors import InputError
from meanfield._policy import validate_policy


def check_writable(path: str | os.PathLike[str]) -> Path:
    """`path` as a Path, if a file can be written there; InputError if not, so that work need not start in vain."""
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError(f"path = {path}: the folder {path.parent} does not exist")
    if path.is_dir():
        raise InputError(f"path = {path}: it is a folder, expected the name of a file")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"path = {path}: the folder {path.parent} can't be written to")
    return path


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a temporary path with the same ending, which becomes `path` if the block succeeds and vanishes if not.

    Raises
    ------
    InputError
        If `path` can't be written.
    """
    path = check_writable(path)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        temporary = Path(folder) / path.name
        yield temporary
        temporary.replace(path)


def save(dataset: xr.Dataset, path: str | os.PathLike[str]) -> Path:
    """Write a Dataset to a NetCDF file, whole or not at all; returns the path.

    Raises
    ------
    InputError
        If `path` can't be written.
    """
    with whole_file(path) as temporary:
        # An encoding that came from another file would cut longer strings to the length that they had there.
        dataset.drop_encoding().to_netcdf(temporary, engine="h5netcdf")
    return Path(path)


def load(path: str | os.PathLike[str]) -> xr.Dataset:
    """Read a Dataset that `save` wrote, into memory; InputError where there is no such file or it is not NetCDF."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"path = {path}: there is no such file")
    try:
        dataset = xr.load_dataset(path, engine="h5netcdf")
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"path = {path}: expected a NetCDF file, and it can't be read ({error})") from None
    return _with_missing_strings(dataset.drop_encoding())


def load_policy(path: str | os.PathLike[str]) -> xr.Dataset:
    """Read and validate a policy, or a stack of policies over (model, pair), from a NetCDF file.

    Raises
    ------
    InputError
        If the file cannot be read or holds no valid policy.
    """
    return validate_policy(load(path), name=str(path))


def _with_missing_strings(dataset: xr.Dataset) -> xr.Dataset:
    """NetCDF has no missing string: it comes back as '', which stands for None in a variable that says so."""
    for name, variable in dataset.data_vars.items():
        if variable.attrs.get("missing") == "":
            values = variable.values.astype(object)
            values[values == ""] = None
            dataset[name] = variable.copy(data=values)
    return dataset
