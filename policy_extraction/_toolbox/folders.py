"""Folders that are written whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def folder_once(path: Path, fill: Callable[[Path], None]) -> None:
    """Make the folder `path` by `fill(temporary folder)`; the first of several processes wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=path.name, suffix=".part"))
    try:
        fill(temporary)
        temporary.chmod(0o755)
        try:
            temporary.rename(path)
        except OSError:
            if not path.is_dir():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
