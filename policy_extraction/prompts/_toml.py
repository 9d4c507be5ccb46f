"""TOML files of prompts, a user's and the package's."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from meanfield import InputError
from meanfield.toolbox import path_of, shown

LARGEST = 200_000  # bytes
# Python's reader needs memory quadratic in the number of names in a key.
PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
LONG_KEY = re.compile(rf"(?<![\w-]){PART}(?:[ \t]*+\.[ \t]*+{PART}){{100}}")
TEXT, TEXTS, NUMBERS, YES_OR_NO = "text", "a list of texts", "a list of numbers", "true or false"
KINDS: dict[str, Callable[[Any], bool]] = {
    TEXT: lambda value: isinstance(value, str),
    TEXTS: lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
    NUMBERS: lambda value: isinstance(value, list) and all(type(one) in (int, float) for one in value),
    YES_OR_NO: lambda value: isinstance(value, bool),
}


def read_toml(path: str | os.PathLike[str], what: str) -> dict[str, Any]:
    """The content of the file; `InputError` if it can't be read or is not TOML. `what` names the expected content."""
    path = path_of(path)
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise InputError(f"path = {path}: {what} can't be read (it has more than {LARGEST // 1000} kB)")
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise InputError(f"path = {path}: {what} can't be read ({reason})") from None
    try:
        if LONG_KEY.search(text):
            raise ValueError("a key has more than 100 names")
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also of too many digits or levels
        raise InputError(f"path = {path}: this is no TOML file ({str(error).partition(chr(10))[0]})") from None


def packaged_toml(name: str) -> dict[str, Any]:
    """The content of a file in `templates`."""
    return tomllib.loads((files("policy_extraction.prompts") / "templates" / name).read_text(encoding="utf-8"))


def check_layout(table: Mapping[str, Any], layout: Mapping[str, Any], source: str, within: str = "") -> None:
    """InputError unless the table has exactly the names of the layout, with values of their kinds."""
    if missing := [within + name for name in layout if name not in table]:
        raise InputError(f"path = {source}: the file lacks {', '.join(missing)}")
    for name, value in table.items():
        if name not in layout:
            known = ", ".join(within + one for one in layout)
            raise InputError(f"path = {source}: {within}{name} is no key of the file; expected {known}")
        expected = layout[name]
        if isinstance(expected, str):
            if not KINDS[expected](value):
                raise InputError(f"path = {source}: {within}{name} = {shown(value)}, expected {expected}")
        elif isinstance(value, dict):
            check_layout(value, expected, source, f"{within}{name}.")
        else:
            raise InputError(f"path = {source}: {within}{name} = {shown(value)}, expected a table")
