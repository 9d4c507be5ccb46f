"""Errors of requests: whether to try again, and one line that says what to do."""

from __future__ import annotations

import re
import time
from collections.abc import Collection
from email.utils import parsedate_to_datetime
from typing import Any

from meanfield import InputError, ModelError
from policy_extraction.backends._backend import NoLogProbabilitiesError
from policy_extraction.backends.api._reply import CutOffError, NoLogprobsError, UnusableReplyError

LONGEST_MESSAGE = 300  # characters of a server's own words


class ServerError(ModelError, ConnectionError):
    """A server that can be reached keeps failing: all attempts of a request were in vain.

    `extract` keeps the answers so far, and the same call goes on from there.

    See Also
    --------
    OpenAIBackend : `max_retries`, `backoff` and `timeout` say how long it tries
    """


class RefusedLogprobsError(NoLogProbabilitiesError):
    """A server refuses a request for log-probabilities, or for so many of them."""


def message_of(error: BaseException) -> str:
    """One line about the error, in the server's own words if it gave any."""
    body = getattr(error, "body", None)
    text = body.get("message") if isinstance(body, dict) else None
    status = getattr(error, "status_code", None)
    cause = error.__cause__ if getattr(error, "request", None) and status is None else None
    said = text if isinstance(text, str) else None
    line = " ".join((said or str(cause or error) or type(error).__name__).split())
    return f"HTTP {status}: {line}" if status else line


def transient(error: BaseException) -> bool:
    """Whether the same request may succeed later."""
    import openai

    if isinstance(error, openai.APIStatusError):
        return may_pass(error.status_code, error.code)
    return isinstance(error, (openai.APIConnectionError, TimeoutError, UnusableReplyError))


def may_pass(status: int, code: object) -> bool:
    """Whether the same request may succeed after a refusal with this status and code."""
    return status in (408, 409) or status >= 500 or (status == 429 and code != "insufficient_quota")


def named_in(error: BaseException, fields: Collection[str]) -> set[str]:
    """Fields of a request for which the server refuses it: by its `param`, else by its message."""
    import openai

    if not isinstance(error, (openai.BadRequestError, openai.UnprocessableEntityError, openai.PermissionDeniedError)):
        return set()
    said = message_of(error)
    found = {name for name in fields if re.search(rf"(?<!\w){name}(?!\w)", said)}
    return {name for name in fields if name == error.param} or found


def asked_wait(error: object) -> float | None:
    """Seconds that the headers of a refusal ask to wait; None without such a header."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            return max(0.0, float(value) * unit)
        except ValueError:
            pass
        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
        except (ValueError, OverflowError):  # no date, or a date beyond the calendar
            pass
    return None


def refusal(error: Exception, said: str, model: str, base_url: str, fields: dict[str, Any]) -> Exception:
    """The error to raise for a request that is not worth another attempt."""
    import openai

    if isinstance(error, openai.AuthenticationError):
        return InputError(f"api_key: refused by {base_url} ({said})")
    if isinstance(error, openai.RateLimitError):
        return InputError(f"api_key: its account has no credit left at {base_url} ({said})")
    if isinstance(error, openai.APIStatusError) and "logprob" in said.lower():
        asked = fields.get("top_logprobs", fields.get("logprobs"))
        return RefusedLogprobsError(f"top_logprobs = {asked}: refused for {model} by {base_url} ({said})")
    if isinstance(error, NoLogprobsError):
        return NoLogProbabilitiesError(f"model = {model} at {base_url}: {said}; `measure` can sample its answers")
    if isinstance(error, CutOffError):
        return InputError(f"reasoning_tokens: {model} at {base_url} {said}")
    if "temperature" in fields and named_in(error, ["temperature"]):
        refused = f"temperature = {fields['temperature']}: refused for {model} by {base_url} ({said})"
        return InputError(f"{refused}; expected its own, 1.0")
    if isinstance(error, openai.PermissionDeniedError):
        return InputError(f"model = {model}: this api_key may not use it at {base_url} ({said})")
    if isinstance(error, openai.NotFoundError):
        return InputError(f"model = {model}: not found at {base_url} ({said})")
    if isinstance(error, openai.APIStatusError):
        if "context" in said.lower():
            return InputError(f"memory_length: a prompt is longer than the context of {model} ({said})")
        return InputError(f"model = {model}: {base_url} refuses the request ({said})")
    if isinstance(error, UnusableReplyError):
        return InputError(f"model = {model} at {base_url}: {said}")
    if isinstance(error, (openai.APIConnectionError, TimeoutError)):
        return InputError(f"base_url = {base_url}: can't be reached ({said})")
    return error
