"""Records of earlier measurements, in files.

Every file is written under a temporary name and then renamed, so that an interrupted run leaves nothing half-written.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

import xarray as xr

from meanfield import InputError, StorageError, cache_folder, load, save
from policy_extraction.measuring._store import Measured

UNFINISHED = ".zarr"


class RecordCache:
    """Records of measurements as NetCDF files, named by the SHA-256 of what determines them.

    What an unfinished measurement has is in a Zarr array beside them.

    Parameters
    ----------
    cache
        True for the folder `records` in `cache_folder`, False for no cache, or a folder.

    Raises
    ------
    InputError
        If `cache` is none of these.
    """

    def __init__(self, cache: bool | str | os.PathLike[str]) -> None:
        if not isinstance(cache, (bool, str, os.PathLike)):
            raise InputError(f"cache = {cache!r}: expected True, False or a folder")
        self.folder = cache_folder() / "records" if cache is True else Path(cache).expanduser() if cache else None

    def prepare(self) -> None:
        """Make the folder, before a measurement that would be lost without it; InputError where that is impossible."""
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise InputError(
                f"cache = {self.folder}: can't be written to ({error.strerror}); "
                "set MEANFIELD_CACHE to another folder, or pass cache=False"
            ) from None

    def get(self, key: dict[str, object]) -> xr.Dataset | None:
        """The record with this key, or None."""
        if self.folder is None or not self._path(key).is_file():
            return None
        try:
            record = load(self._path(key))
        except InputError:  # a damaged file is as good as none
            return None
        shutil.rmtree(self._path(key, UNFINISHED), ignore_errors=True)  # of a process that was killed after `put`
        return record

    def put(self, key: dict[str, object], record: xr.Dataset) -> None:
        """Keep a record; StorageError where that is impossible.

        It is written beside what was measured, so that what a killed process leaves of it goes with that.
        """
        if self.folder is None:
            return
        path, folder = self._path(key), self._path(key, UNFINISHED)
        try:
            folder.mkdir(exist_ok=True)
            save(record, folder / path.name).replace(path)
        except FileNotFoundError:
            if not path.is_file():  # by another process, which removed the folder then
                raise
        except (OSError, RuntimeError) as error:  # of the disk, and what HDF5 makes of it
            raise StorageError(
                f"cache = {path}: can't be written ({getattr(error, 'strerror', None) or error}); what was measured is "
                "kept, start again to go on"
            ) from None

    def unfinished(self, key: dict[str, object], n_prompts: int, n_words: int) -> Measured:
        """What is known of a record that is not finished."""
        return Measured(None if self.folder is None else self._path(key, UNFINISHED), n_prompts, n_words)

    def _path(self, key: dict[str, object], ending: str = ".nc") -> Path:
        assert self.folder is not None
        text = json.dumps(key, sort_keys=True, ensure_ascii=False)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()}{ending}"
