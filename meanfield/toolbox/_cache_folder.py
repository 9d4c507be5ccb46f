"""The cache folder for files that can be fetched or measured again."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """The folder in the environment variable MEANFIELD_CACHE, else the user's cache folder for meanfield.

    Examples
    --------
    >>> meanfield.cache_folder()  # doctest: +SKIP
    PosixPath('/home/ada/.cache/meanfield')
    """
    chosen = os.environ.get("MEANFIELD_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache_path("meanfield")
