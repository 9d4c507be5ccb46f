"""What counts as an answer in the flag game: one JSON object with exactly the keys that were asked for."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

MOST_INFLUENTIAL = 3
SHOWN = 60  # characters of a wrong value that are repeated to the model


class ReplyError(ValueError):
    """An answer that can't be used; its text is what is wrong with it."""


@dataclass(frozen=True)
class Expected:
    """What an answer must hold.

    Attributes
    ----------
    keys
        Its keys, all of them.
    countries
        What `country` may be.
    model
        What `model_identity` must be.
    others
        What `influential_agent_ids` may name, up to three.
    """

    keys: tuple[str, ...]
    countries: tuple[str, ...]
    model: str = ""
    others: frozenset[int] = frozenset()


def parse_reply(text: str, expected: Expected) -> dict[str, Any]:
    """The answer as a dict; ReplyError says what is wrong with one that is not exactly as expected.

    Nothing is repaired: no text around the object, no other key, no key twice, no other spelling of a country.
    """
    try:
        reply = json.loads(text, object_pairs_hook=_object)
    except ReplyError:
        raise
    except (ValueError, RecursionError):
        raise ReplyError("it is not one JSON object and nothing else") from None
    if not isinstance(reply, dict):
        raise ReplyError("it is not one JSON object and nothing else")
    if set(reply) != set(expected.keys):
        raise ReplyError(f"its keys are {_shown(list(reply))}, expected {_shown(list(expected.keys))}")
    for key, value in reply.items():
        if key == "influential_agent_ids":
            _check_ids(value, expected.others)
        elif not _is_text(value):
            raise ReplyError(f"{key} is {_shown(value)}, expected text")
    if reply["country"] not in expected.countries:
        raise ReplyError(f"{_shown(reply['country'])} is not one of the allowed countries")
    if "model_identity" in reply and reply["model_identity"] != expected.model:
        raise ReplyError(f"model_identity is {_shown(reply['model_identity'])}, expected {_shown(expected.model)}")
    return reply


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ReplyError("it has a key twice")
    return found


def _is_text(value: object) -> bool:
    """Whether it is text that can be sent on: JSON can also spell halves of characters."""
    return isinstance(value, str) and bool(value.strip()) and not re.search("[\ud800-\udfff]", value)


def _check_ids(value: object, others: frozenset[int]) -> None:
    whole = isinstance(value, list) and all(type(one) is int for one in value)
    if not whole or len(set(value)) < len(value) or len(value) > MOST_INFLUENTIAL or not set(value) <= others:
        raise ReplyError(
            f"influential_agent_ids is {_shown(value)}, expected a list of at most {MOST_INFLUENTIAL} different ids "
            "of the other agents, as numbers"
        )


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
