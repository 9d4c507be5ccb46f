"""Where a published file is: a given path, the folder in MEANFIELD_DATA, the cache, or its upstream."""

from __future__ import annotations

import os
from pathlib import Path

import pooch

from meanfield._cache_folder import cache_folder
from meanfield._errors import InputError


def find_local(folder: str, name: str, path: str | os.PathLike[str] | None, upstream: str = "") -> Path | None:
    """The file `name` at `path` (itself or a folder), else in MEANFIELD_DATA; None where neither is given.

    `upstream` is where the file lies in a clone of its repository, which may be one of these folders.

    Raises
    ------
    InputError
        If `path` is given and the file is not there; MEANFIELD_DATA may hold other files only.
    """
    for source, place in (("path", path), ("MEANFIELD_DATA", os.environ.get("MEANFIELD_DATA") or None)):
        if place is None:
            continue
        place = Path(place)
        candidates = [place, place / name, place / folder / name, place / upstream]
        for candidate in candidates:
            if candidate.is_file():
                return candidate
        if source == "path":
            raise InputError(f"path = {place}: expected {name}, or a folder that holds it or {folder}/{name}")
    return None


def download(name: str, url: str, sha256: str) -> Path:
    """The file in the cache, fetched from `url` at need; its SHA-256 is checked each time.

    Raises
    ------
    InputError
        If the download fails or the file is not the one that was published.
    """
    try:
        found = pooch.retrieve(url, known_hash=f"sha256:{sha256}", fname=name, path=cache_folder(), progressbar=True)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0][:200]
        raise InputError(
            f"{name}: it is not in MEANFIELD_DATA, and can't be fetched from {url} ({reason}); "
            "download it by hand and give its path"
        ) from None
    return Path(found)
