"""Members of zip archives, within limits."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from meanfield.toolbox._errors import InputError, reason

LARGEST_ARCHIVE = 2**24  # bytes; the published ones have at most 2.3 million
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def members(path: Path, pattern: re.Pattern[str], largest: int) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files in a zip archive whose names, without folders, match `pattern`.

    InputError if `path` is no zip archive, is damaged, encrypted or too large, holds a name twice, uses another
    compression than deflate, or has a member of more than `largest` bytes, which is checked before it is read.
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
