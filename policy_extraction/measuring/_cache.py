"""Files of earlier measurements, written whole or not at all: finished records here, answers in `_answers`."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import xarray as xr

from meanfield import InputError, StorageError, cache_folder, load, save
from policy_extraction.measuring._answers import Answers


class RecordCache:
    """Records as NetCDF files, named by the SHA-256 of their keys, in `cache`, with answers beside them."""

    def __init__(self, cache: bool | str | os.PathLike[str], name: str = "records") -> None:
        if not isinstance(cache, (bool, str, os.PathLike)):
            raise InputError(f"cache = {cache!r}: expected True, False or a folder")
        self.folder = cache_folder() / name if cache is True else Path(cache).expanduser() if cache else None

    def prepare(self) -> None:
        """Make the folder, before a measurement that would be lost without it; StorageError if that fails."""
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            raise StorageError(
                f"cache = {self.folder}: can't be written to ({getattr(error, 'strerror', error)}); "
                "set MEANFIELD_CACHE to another folder, or pass cache=False"
            ) from None

    def get(self, key: dict[str, object]) -> xr.Dataset | None:
        """The record with this key, or None."""
        try:
            if self.folder is None or not self._path(key).is_file():
                return None
            record = load(self._path(key))
        except (InputError, OSError):  # a damaged file counts as none; `prepare` tells of a folder that can't be read
            return None
        self._clear(key)  # for a process that was killed after `put`
        return record

    def put(self, key: dict[str, object], record: xr.Dataset) -> None:
        """Keep a record, and delete the answers that it was made of; StorageError if that fails."""
        if self.folder is None:
            return
        path = self._path(key)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            save(record, path)
        except (OSError, RuntimeError) as error:  # HDF5 turns errors of the disk into RuntimeError
            if not (isinstance(error, FileNotFoundError) and path.is_file()):  # unless another process kept it first
                raise StorageError(
                    f"cache = {path}: can't be written ({getattr(error, 'strerror', None) or error}); answers "
                    "are kept, start again to go on"
                ) from None
        self._clear(key)

    def answers(self, key: dict[str, object]) -> Answers:
        """The answers so far."""
        return Answers(None if self.folder is None else self._path(key, ".sqlite"))

    def _clear(self, key: dict[str, object]) -> None:
        """Remove all but the record: answers, half-written files of killed processes, stores of earlier releases."""
        record = self._path(key)
        for path in record.parent.glob(f"*{record.stem}*"):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path != record:
                with suppress(PermissionError):  # Windows keeps what another process has open; a later call removes it
                    path.unlink(missing_ok=True)

    def _path(self, key: dict[str, object], ending: str = ".nc") -> Path:
        assert self.folder is not None
        text = json.dumps(key, sort_keys=True, ensure_ascii=False)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()}{ending}"
