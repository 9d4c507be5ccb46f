"""Slots in the texts of prompts, in the notation of `string.Template`."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence, Set

from meanfield import InputError
from meanfield.toolbox import shown


def check_slots(place: str, texts: Sequence[str], needed: Set[str], allowed: Set[str] = frozenset()) -> None:
    """InputError unless the texts together have all needed slots, and no others except allowed ones."""
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise InputError(f"{place} = {shown(wrong[0])}: expected text")
    templates = [string.Template(text) for text in texts]
    if not all(template.is_valid() for template in templates):
        raise InputError(f"{place} has a $ that starts no slot; a dollar sign is written $$")
    found = {slot for template in templates for slot in template.get_identifiers()}
    if needed - found:
        missing = " and ".join(f"${slot}" for slot in sorted(needed - found))
        raise InputError(f"{place} lacks the slot {missing}")
    if unknown := found - needed - allowed:
        expected = ", ".join(f"${slot}" for slot in sorted(needed | allowed))
        raise InputError(f"{place} has the slot ${min(unknown)}; expected {expected}")


def fill(text: str, slots: Mapping[str, object]) -> str:
    """The text with its slots filled."""
    return string.Template(text).substitute(slots)
