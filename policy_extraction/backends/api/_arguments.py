"""Checks of the arguments of a server's back end, before any request."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, get_args
from urllib.parse import urlsplit

from meanfield import InputError
from meanfield.toolbox import shown
from policy_extraction._toolbox.texts import can_be_kept, check_name
from policy_extraction.backends.api._request import Prefill
from policy_extraction.backends.api._secrets import HIDDEN, without_login

OPENAI = "https://api.openai.com/v1"
ADDRESS = "an address like http://127.0.0.1:8000/v1"
# The meaning of a measurement depends on them.
SET_HERE = (
    *("model", "messages", "prompt", "temperature", "top_p", "logprobs", "top_logprobs"),
    *("max_tokens", "max_completion_tokens", "seed", "n", "stream"),
)


def check_model(model: str, prefill: str) -> None:
    """InputError unless the library `openai` is installed, and name and prefill are possible ones."""
    if importlib.util.find_spec("openai") is None:
        raise InputError("an API needs the library openai, not installed here: pip install openai")
    check_name("model", model)
    if prefill not in get_args(Prefill):
        raise InputError(f"prefill = {prefill!r}: expected one of {', '.join(get_args(Prefill))}")


def checked_address(base_url: str) -> str:
    """The address without a slash at its end; InputError, which hides possible secrets, if it is none."""
    if isinstance(base_url, str) and can_be_kept(base_url) and re.fullmatch(r"https?://[^\s\0-\x20\x7f]+", base_url):
        try:
            parts = urlsplit(base_url)
            _ = parts.port  # ValueError if it is no number
            if parts.hostname and "?" not in base_url and "#" not in base_url:
                return base_url.rstrip("/")
        except ValueError:
            pass
    told = re.sub(r"//.*@|[?#].*", HIDDEN, str(base_url), flags=re.DOTALL)
    raise InputError(f"base_url = {shown(told)}: expected {ADDRESS}, without fields after a question mark")


def checked_fields(extra_body: Mapping[str, Any] | None) -> dict[str, Any]:
    """Further fields of every request; InputError if JSON can't hold them, or the back end sets one of them."""
    if extra_body is None:
        return {}
    if not isinstance(extra_body, Mapping) or not all(isinstance(name, str) for name in extra_body):
        raise InputError(f"extra_body = {shown(extra_body)}: expected a dict of fields by name, or None")
    taken = [name for name in SET_HERE if name in extra_body]
    if taken:
        raise InputError(f"extra_body = {shown(extra_body)}: expected no {', '.join(taken)}, which the back end sets")
    try:
        json.dumps(dict(extra_body), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"extra_body: expected what JSON can hold ({error})") from None
    return dict(extra_body)


def find_key(api_key: str | None, address: str) -> str:
    """The given key, or else the one in OPENAI_API_KEY, which no server on this machine gets; InputError for none."""
    key = api_key or ("none" if on_this_machine(address) else os.environ.get("OPENAI_API_KEY"))
    if not key:
        raise InputError(f"api_key: {without_login(address)} needs one; set OPENAI_API_KEY, or pass api_key")
    if not isinstance(key, str) or not re.fullmatch("[!-~]+", key):
        raise InputError("api_key: it has a space, a line end or another sign of no key; expected the key alone")
    return key


def on_this_machine(base_url: str) -> bool:
    """Whether it is a loopback address."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
