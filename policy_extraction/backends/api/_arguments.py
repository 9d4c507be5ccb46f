"""Checks of what a back end for a server is made with, before any request."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Mapping
from typing import Any, get_args
from urllib.parse import urlsplit

from meanfield import InputError
from meanfield.toolbox import is_number, shown
from policy_extraction._toolbox.texts import can_be_kept, check_name
from policy_extraction.backends.api._request import Prefill
from policy_extraction.backends.api._secrets import HIDDEN

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
    check_name("model", model)
    if prefill not in get_args(Prefill):
        raise InputError(f"prefill = {prefill!r}: expected one of {', '.join(get_args(Prefill))}")


def check_seconds(name: str, value: float, *, zero: bool) -> None:
    """Refuse what is no time, or none at all unless it may be zero."""
    if not is_number(value) or value < 0 or (value == 0 and not zero):
        raise InputError(f"{name} = {shown(value)}: expected seconds, {'0 or more' if zero else 'more than 0'}")


def checked_address(base_url: str) -> str:
    """The address without a slash at its end.

    Raises
    ------
    InputError
        If it is none. What may be a secret in it is not shown.
    """
    if isinstance(base_url, str) and can_be_kept(base_url) and re.fullmatch(r"https?://[^\s\0-\x20\x7f]+", base_url):
        try:
            parts = urlsplit(base_url)
            _ = parts.port  # ValueError where it is none
            if parts.hostname and "?" not in base_url and "#" not in base_url:
                return base_url.rstrip("/")
        except ValueError:
            pass
    told = re.sub(r"//.*@|[?#].*", HIDDEN, str(base_url), flags=re.DOTALL)
    raise InputError(f"base_url = {shown(told)}: expected {ADDRESS}, without fields after a question mark")


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
        raise InputError(f"extra_body = {shown(extra_body)}: expected a dict of fields by name, or None")
    taken = [name for name in SET_HERE if name in extra_body]
    if taken:
        raise InputError(
            f"extra_body = {shown(extra_body)}: expected no {', '.join(taken)}, set by the back end itself"
        )
    try:
        json.dumps(dict(extra_body), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"extra_body: expected what JSON can hold ({error})") from None
    return dict(extra_body)
