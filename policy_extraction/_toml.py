"""TOML files of prompts: a user's own, and those that come with the package."""

from __future__ import annotations

import os
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from meanfield import InputError


def read_toml(path: str | os.PathLike[str], what: str) -> dict[str, Any]:
    """What the file says; `InputError` if it can't be read or is no TOML, with `what` should have been in it."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise InputError(f"path = {path}: {what} can't be read ({reason})") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"path = {path}: this is no TOML file ({str(error).partition(chr(10))[0]})") from None


def packaged_toml(name: str) -> dict[str, Any]:
    """What a file in `policy_extraction/templates` says."""
    return tomllib.loads((files("policy_extraction") / "templates" / name).read_text(encoding="utf-8"))
