"""Texts that files can hold, and values as an error shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from meanfield import InputError
from meanfield.toolbox import shown

MANY = 1_000_000  # of anything that a language model is asked for
LONGEST_NAME = 1000  # characters of a word or a name


def can_be_kept(text: str) -> bool:
    """Whether NetCDF can hold it: no null character, and no half of a character."""
    return not re.search("[\0\ud800-\udfff]", text)


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
