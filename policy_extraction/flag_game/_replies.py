"""Valid answers in the flag game: one JSON object with exactly the requested keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from policy_extraction._toolbox.json_replies import DECODER, ReplyError, is_text, shown

MOST_INFLUENTIAL = 3


@dataclass(frozen=True)
class Expected:
    """The content of a valid answer."""

    keys: tuple[str, ...]  # all of them
    countries: tuple[str, ...]  # allowed values of `country`
    model: str = ""  # value of `model_identity`
    others: frozenset[int] = frozenset()  # `influential_agent_ids` names up to three of them


def parse_reply(text: str, expected: Expected) -> dict[str, Any]:
    """The answer as a dict in the order of `expected.keys`; ReplyError names the mistake.

    Nothing is repaired: no text around the object, no other key, no key twice, no other spelling of a country.
    """
    try:
        reply = DECODER.decode(text)
    except ReplyError:
        raise
    except (ValueError, RecursionError):
        raise ReplyError("it is not one JSON object and nothing else") from None
    if not isinstance(reply, dict):
        raise ReplyError("it is not one JSON object and nothing else")
    if set(reply) != set(expected.keys):
        raise ReplyError(f"its keys are {shown(list(reply))}, expected {shown(list(expected.keys))}")
    for key, value in reply.items():
        if key == "influential_agent_ids":
            _check_ids(value, expected.others)
        elif not is_text(value):
            raise ReplyError(f"{key} is {shown(value)}, expected text")
    if reply["country"] not in expected.countries:
        raise ReplyError(f"{shown(reply['country'])} is not one of the allowed countries")
    if "model_identity" in reply and reply["model_identity"] != expected.model:
        raise ReplyError(f"model_identity is {shown(reply['model_identity'])}, expected {shown(expected.model)}")
    # The messages to others must not depend on the order in which a model writes.
    return {key: reply[key] for key in expected.keys}


def _check_ids(value: object, others: frozenset[int]) -> None:
    whole = isinstance(value, list) and all(type(one) is int for one in value)
    if not whole or len(set(value)) < len(value) or len(value) > MOST_INFLUENTIAL or not set(value) <= others:
        raise ReplyError(
            f"influential_agent_ids is {shown(value)}, expected a list of at most {MOST_INFLUENTIAL} different ids "
            "of the other agents, as numbers"
        )
