"""Where a published file is found: a given path, the folder in MEANFIELD_DATA, the cache, or its upstream."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pooch

from meanfield.toolbox._cache_folder import cache_folder
from meanfield.toolbox._errors import InputError, reason
from meanfield.toolbox._files import path_of

LARGEST_DOWNLOAD = 2**22  # bytes; the largest published file has 2.3 million


def find_local(folder: str, name: str, path: str | os.PathLike[str] | None, upstream: str = "") -> Path | None:
    """The file `name` at `path` (the file or a folder), else in MEANFIELD_DATA; None if neither is given.

    The file is the user's own and may hold a part of the published one, so its hash is not checked; its reader refuses
    damaged files. `upstream` is the place of the file in a clone of its repository, which may be one of these folders.
    InputError if `path` is given and the file is not there; MEANFIELD_DATA may hold other files only.
    """
    for source, place in (("path", path), ("MEANFIELD_DATA", os.environ.get("MEANFIELD_DATA") or None)):
        if place is None:
            continue
        place = path_of(place, source)
        candidates = [place, place / name, place / folder / name, place / upstream]
        for candidate in candidates:
            if candidate.is_file():
                return candidate
        if source == "path":
            raise InputError(f"path = {place}: expected {name}, or a folder that holds it or {folder}/{name}")
    return None


def download(name: str, url: str, sha256: str) -> Path:
    """The file in the cache, fetched from `url` if necessary; its SHA-256 is checked each time.

    InputError if the download fails, is longer than any published file, or is another file.
    """

    def fetch(url: str, target: str, _: object) -> None:
        with _Limited(target, "wb") as file:
            pooch.HTTPDownloader(progressbar=True)(url, file, None)

    try:
        found = pooch.retrieve(url, f"sha256:{sha256}", fname=name, path=cache_folder(), downloader=fetch)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{name}: it is not in MEANFIELD_DATA, and can't be fetched from {url} ({reason(error)}); "
            "download it by hand and give its path"
        ) from None
    return Path(found)


class _Limited(io.FileIO):
    """A file of at most `LARGEST_DOWNLOAD` bytes."""

    def write(self, content: Any, /) -> int:
        if self.tell() + len(content) > LARGEST_DOWNLOAD:
            raise ValueError(f"it has more than {LARGEST_DOWNLOAD} bytes")
        return super().write(content)
