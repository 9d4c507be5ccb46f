"""Checks of texts that files have to hold."""

from __future__ import annotations

import re
from collections.abc import Mapping

from meanfield import InputError
from meanfield.toolbox import shown

MANY = 1_000_000  # upper limit of counts given as arguments
LONGEST_NAME = 1000  # characters of a word or a name


def can_be_kept(text: str) -> bool:
    """Whether NetCDF can hold the text: it has no null character and no half of a character."""
    return not re.search("[\0\ud800-\udfff]", text)


def check_name(what: str, name: object) -> None:
    """InputError unless the name is text that is not blank, not too long, and can be saved."""
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{what} = {shown(name)}: expected text")
    if len(name) > LONGEST_NAME:
        raise InputError(f"{what} = {shown(name)}: {len(name):,} characters, expected at most {LONGEST_NAME:,}")
    check_kept({what: name})


def check_kept(texts: Mapping[str, object]) -> None:
    """InputError if one of the texts can't be saved; the keys say what they are."""
    for what, text in texts.items():
        if isinstance(text, str) and not can_be_kept(text):
            raise InputError(f"{what} = {shown(text)}: expected no null character and no half of a character")
