"""Published archives: their members, within limits, and plain data out of pickles, without running code they name."""

from __future__ import annotations

import io
import pickle
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from meanfield.toolbox._errors import InputError, reason

LARGEST_ARCHIVE = 2**24  # bytes; the published ones have at most 2.3 million
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
FORMATS = {"f8": "<d", "i8": "<q"}
LITTLE_ENDIAN = (3, "<", None, None, None, -1, -1, 0)  # the state of a numpy.dtype of these numbers


def members(path: Path, pattern: re.Pattern[str], largest: int) -> Iterator[tuple[str, bytes]]:
    """Files of a zip archive, as (name, content), whose names without folders match `pattern`.

    InputError if `path` is not a zip archive, is damaged, encrypted or too large, holds a name twice, uses compression
    other than deflate, or has a member above `largest` bytes (checked before reading).
    """
    if path.stat().st_size > LARGEST_ARCHIVE:
        raise InputError(f"path = {path}: expected a zip archive of at most {LARGEST_ARCHIVE} bytes")
    try:
        with zipfile.ZipFile(path) as archive:
            seen: set[str] = set()
            for info in archive.infolist():
                if not pattern.fullmatch(PurePosixPath(info.filename).name):
                    continue
                if info.filename in seen:
                    raise InputError(f"path = {path}: holds {info.filename!r} twice")
                seen.add(info.filename)
                if info.file_size > largest or info.compress_type not in METHODS:
                    raise InputError(
                        f"path = {path}: {info.filename!r} has {info.file_size} bytes, method {info.compress_type}: "
                        f"expected at most {largest} bytes, stored or deflated"
                    )
                with archive.open(info) as file:
                    # Reading it without a size would unpack all that is there, whatever size the archive declares.
                    content = file.read(info.file_size)
                yield info.filename, content
    except InputError:
        raise
    # EOFError, RuntimeError and NotImplementedError: cut short, encrypted, and of an unknown version.
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError) as error:
        raise InputError(f"path = {path}: expected a zip archive, and it can't be read ({reason(error)})") from None


class _Dtype:
    """Stands in for numpy.dtype, with which a pickle can make numpy take bytes for pointers."""

    def __init__(self, code: str, align: bool, copy: bool) -> None:
        if code not in FORMATS:
            raise ValueError(f"it has numbers of the type {code!r:.20}: expected {' or '.join(FORMATS)}")
        self.format = FORMATS[code]

    def __setstate__(self, state: object) -> None:
        if state != LITTLE_ENDIAN:
            raise ValueError("it changes the state of a numpy.dtype")


def _scalar(dtype: _Dtype, content: bytes) -> float | int:
    return struct.unpack(dtype.format, content)[0]


# numpy moved its core between the releases that wrote the published files and ours.
ADMITTED = {
    "numpy.dtype": _Dtype,
    "numpy.core.multiarray.scalar": _scalar,
    "numpy._core.multiarray.scalar": _scalar,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> Any:
        named = f"{module_name}.{global_name}"
        if named not in ADMITTED:
            raise ValueError(f"it asks for {named:.100}: expected numpy scalars only, so it is not opened")
        return ADMITTED[named]


def unpickle(data: bytes, name: str) -> Any:
    """The numbers, strings and containers in a pickle; numpy's float64 and int64 scalars become numbers.

    InputError if it asks for anything else, or is damaged. A crafted pickle runs no code, but may take much memory or
    end the process.
    """
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except Exception as error:  # damaged ones raise almost anything
        raise InputError(f"{name}: expected a pickle of plain data, and it can't be read ({reason(error)})") from None
