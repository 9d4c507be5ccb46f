"""JSON that a language model wrote, read strictly; each fault is described in one line."""

from __future__ import annotations

import json
from typing import Any

from policy_extraction._toolbox.texts import can_be_kept

SHOWN = 60  # characters of a wrong value that are repeated to the model


class ReplyError(ValueError):
    """An answer is unusable; the message says why."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ReplyError("it has a key twice")
    return found


DECODER = json.JSONDecoder(object_pairs_hook=_once)
"""Reads JSON; raises `ReplyError` if a key occurs twice."""


def is_text(value: object) -> bool:
    """Whether the value is text that can be sent and saved; JSON can also spell half of a character."""
    return isinstance(value, str) and bool(value.strip()) and can_be_kept(value)


def shown(value: object) -> str:
    """The value as JSON, cut short."""
    text = json.dumps(value, ensure_ascii=False).encode(errors="replace").decode()
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
