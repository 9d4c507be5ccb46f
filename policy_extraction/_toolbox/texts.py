"""Texts that files can hold, and values as an error shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from meanfield import InputError

SHOWN = 60  # characters of a wrong value
LONGEST_NAME = 1000  # characters of a word or a name


def can_be_kept(text: str) -> bool:
    """Whether NetCDF can hold it: no null character, and no half of a character."""
    return not re.search("[\0\ud800-\udfff]", text)


def shown(value: object) -> str:
    """A value as Python writes it, cut short; its type where Python can't write it."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a whole number of too many digits, a list of too many levels
        text = f"a {type(value).__name__}"
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def check_name(what: str, name: object) -> None:
    """InputError unless it is text, neither blank nor too long, that files can hold."""
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{what} = {shown(name)}: expected text")
    if len(name) > LONGEST_NAME:
        raise InputError(f"{what} = {shown(name)}: it has {len(name):,} characters, expected {LONGEST_NAME:,} at most")
    check_kept({what: name})


def check_kept(texts: Mapping[str, object]) -> None:
    """InputError if one of these, by what they are, is a text that files can't hold; before it comes to that."""
    for what, text in texts.items():
        if isinstance(text, str) and not can_be_kept(text):
            raise InputError(f"{what} = {shown(text)}: expected no null character and no half of a character")
