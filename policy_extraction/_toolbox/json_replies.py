"""JSON that a language model wrote: read strictly, and told of in a line where it can't be used."""

from __future__ import annotations

import json
from typing import Any

from policy_extraction._toolbox.texts import can_be_kept

SHOWN = 60  # characters of a wrong value that are repeated to the model


class ReplyError(ValueError):
    """An answer that can't be used; its text is what is wrong with it."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ReplyError("it has a key twice")
    return found


DECODER = json.JSONDecoder(object_pairs_hook=_once)
"""Reads JSON in which no key is there twice; `ReplyError` where one is."""


def is_text(value: object) -> bool:
    """Whether it is text that can be sent on and kept: JSON can also spell halves of characters."""
    return isinstance(value, str) and bool(value.strip()) and can_be_kept(value)


def shown(value: object) -> str:
    """A value as JSON, cut short."""
    text = json.dumps(value, ensure_ascii=False).encode(errors="replace").decode()
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
