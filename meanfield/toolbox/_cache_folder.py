"""Where this project keeps what it can fetch or measure again."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """The folder in MEANFIELD_CACHE, else this user's cache folder for meanfield."""
    chosen = os.environ.get("MEANFIELD_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache_path("meanfield")
