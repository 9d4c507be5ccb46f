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
from policy_extraction.measuring._answers import Answers


class RecordCache:
    """Records of measurements as NetCDF files, named by the SHA-256 of what determines them, and answers beside them.

    Parameters
    ----------
    cache
        True for a folder in `cache_folder`, False for no cache, or a folder.
    name
        Of the folder in `cache_folder`.

    Raises
    ------
    InputError
        If `cache` is none of these.
    """

    def __init__(self, cache: bool | str | os.PathLike[str], name: str = "records") -> None:
        if not isinstance(cache, (bool, str, os.PathLike)):
            raise InputError(f"cache = {cache!r}: expected True, False or a folder")
        self.folder = cache_folder() / name if cache is True else Path(cache).expanduser() if cache else None

    def prepare(self) -> None:
        """Make the folder, before a measurement that would be lost without it; StorageError where it is impossible."""
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise StorageError(
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
        self._clear(key)  # of a process that was killed after `put`
        return record

    def put(self, key: dict[str, object], record: xr.Dataset) -> None:
        """Keep a record, and no longer the answers that it was made of; StorageError where that is impossible."""
        if self.folder is None:
            return
        path = self._path(key)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            save(record, path)
        except (OSError, RuntimeError) as error:  # of the disk, and what HDF5 makes of it
            if not (isinstance(error, FileNotFoundError) and path.is_file()):  # another process kept it, and cleared
                raise StorageError(
                    f"cache = {path}: can't be written ({getattr(error, 'strerror', None) or error}); answers "
                    "are kept, start again to go on"
                ) from None
        self._clear(key)

    def answers(self, key: dict[str, object]) -> Answers:
        """What was answered so far."""
        return Answers(None if self.folder is None else self._path(key, ".sqlite"))

    def _clear(self, key: dict[str, object]) -> None:
        """Remove all but the record: answers, what killed processes left of a save, and stores of earlier releases."""
        record = self._path(key)
        for path in record.parent.glob(f"*{record.stem}*"):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path != record:
                path.unlink(missing_ok=True)

    def _path(self, key: dict[str, object], ending: str = ".nc") -> Path:
        assert self.folder is not None
        text = json.dumps(key, sort_keys=True, ensure_ascii=False)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()}{ending}"
