"""Checks of what a back end for a server is made with, before any request."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Mapping
from numbers import Real
from typing import Any, get_args

from meanfield import InputError
from policy_extraction.api._request import Prefill

ADDRESS = "an address like http://127.0.0.1:8000/v1"
# What a measurement means depends on them.
SET_HERE = (
    *("model", "messages", "prompt", "temperature", "top_p", "logprobs", "top_logprobs"),
    *("max_tokens", "max_completion_tokens", "seed", "n", "stream"),
)


def check_model(model: str, prefill: str) -> None:
    """Refuse what is no name or no way to begin an answer, and anything where the library is missing."""
    if importlib.util.find_spec("openai") is None:
        raise InputError("an API needs the library openai, not installed here: pip install 'meanfield-llm[api]'")
    if not isinstance(model, str) or not model:
        raise InputError(f"model = {model!r}: expected a name on the server")
    if prefill not in get_args(Prefill):
        raise InputError(f"prefill = {prefill!r}: expected one of {', '.join(get_args(Prefill))}")


def check_whole(name: str, value: int, least: int) -> None:
    """Refuse what is no whole number of at least this."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name} = {value!r}: expected a whole number, at least {least}")


def check_seconds(name: str, value: float, *, zero: bool) -> None:
    """Refuse what is no time, or none at all unless it may be zero."""
    number = isinstance(value, Real) and not isinstance(value, bool) and 0 <= value < math.inf
    if not number or (value == 0 and not zero):
        raise InputError(f"{name} = {value!r}: expected seconds, {'0 or more' if zero else 'more than 0'}")


def check_address(base_url: str) -> None:
    """Refuse what is no address."""
    if not isinstance(base_url, str) or not base_url.startswith(("http://", "https://")):
        raise InputError(f"base_url = {base_url}: expected {ADDRESS}")


def checked_fields(extra_body: Mapping[str, Any] | None) -> dict[str, Any]:
    """The fields of the server's own, for every request.

    Raises
    ------
    InputError
        If JSON can't hold them, or one of them is set by the back end itself.
    """
    if extra_body is None:
        return {}
    if not isinstance(extra_body, Mapping) or not all(isinstance(name, str) for name in extra_body):
        raise InputError(f"extra_body = {extra_body!r}: expected a dict of fields by name, or None")
    taken = [name for name in SET_HERE if name in extra_body]
    if taken:
        raise InputError(f"extra_body = {extra_body!r}: expected no {', '.join(taken)}, set by the back end itself")
    try:
        json.dumps(dict(extra_body), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"extra_body: expected what JSON can hold ({error})") from None
    return dict(extra_body)
