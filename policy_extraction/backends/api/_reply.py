"""Reading a server's reply."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from meanfield.toolbox import shown
from policy_extraction._toolbox.texts import LONGEST_NAME, can_be_kept
from policy_extraction.backends.api._limits import Usage
from policy_extraction.backends.api._words import ROUNDING, TopTokens

NOT_KNOWN = -9999.0  # servers write this, or less, for a very improbable token
CLIPPED = -100.0  # or just this
COLUMNS = ("tokens", "token_logprobs", "top_logprobs")
SPARE = 100  # tokens that a server may list in excess, such as the drawn one
MOST_TOKENS = 10**7  # in one request; no model reads more


Position = tuple[bytes, float, list[tuple[bytes, float]]]
"""A written token, its log-probability, and the tokens listed in its place with theirs."""


class UnusableReplyError(Exception):
    """A reply lacks what was asked for; `may_differ` if another sample may have it."""

    def __init__(self, message: str, *, may_differ: bool = False) -> None:
        super().__init__(message)
        self.may_differ = may_differ


class NoLogprobsError(UnusableReplyError):
    """A reply has no log-probabilities, or none for an answer that is given at once."""


class CutOffError(UnusableReplyError):
    """A reply ends within the thoughts that come before the answer."""


def dict_of(value: object) -> dict[str, Any]:
    """The value if it is a dict, else an empty one."""
    return value if isinstance(value, dict) else {}


def dicts_of(value: object) -> list[dict[str, Any]]:
    """The dicts of a value that should be a list of them."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


@contextmanager
def expecting(message: str) -> Iterator[None]:
    """Raise UnusableReplyError with this message if a part of the reply that the block reads has another form."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise UnusableReplyError(message) from None


def parsed(text: bytes) -> dict[str, Any]:
    """The reply as a dict; UnusableReplyError unless it is a whole JSON object."""
    try:
        reply = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        raise UnusableReplyError("the reply is no whole JSON in UTF-8, or it has too many levels or digits") from None
    if not isinstance(reply, dict):
        raise UnusableReplyError("the reply is no JSON object")
    return reply


def usage_of(reply: Mapping[str, Any]) -> Usage | None:
    """Tokens used; None unless the server counts them in whole numbers."""
    usage = dict_of(reply.get("usage"))
    numbers = usage.get("prompt_tokens"), usage.get("completion_tokens", 0)
    return Usage(*numbers) if all(type(number) is int and 0 <= number <= MOST_TOKENS for number in numbers) else None


def name_of(reply: Mapping[str, Any], field: str) -> str | None:
    """The name of a model or a fingerprint, or None; UnusableReplyError if a file can't hold it."""
    name = reply.get(field)
    if not isinstance(name, str):
        return None
    if len(name) > LONGEST_NAME or not can_be_kept(name):
        raise UnusableReplyError(f"{field} in the reply is {shown(name)}, which is no name that a file can hold")
    return name


def text_of(reply: Mapping[str, Any]) -> str:
    """The text that the model wrote; UnusableReplyError if there is none."""
    choice = _choice(reply)
    text = choice["text"] if "text" in choice else dict_of(choice.get("message")).get("content")
    hidden = "text" not in choice and (text is None or _thought(reply))
    if not text and hidden and choice.get("finish_reason") == "length":
        raise CutOffError("ends within its thoughts, before an answer")
    if not isinstance(text, str):
        raise UnusableReplyError("the reply has no text")
    if not can_be_kept(text):
        raise UnusableReplyError(f"the reply has a text that no file can hold, {shown(text)}", may_differ=True)
    return text


def text_after(reply: Mapping[str, Any], prefix: str, *, required: bool) -> str:
    """The text after the prefix, which some servers repeat; UnusableReplyError if a required prefix is missing."""
    text = text_of(reply)
    begins = text.lstrip().startswith(prefix)
    if required and not begins:
        raise _other_beginning(prefix)
    return text.lstrip()[len(prefix) :] if begins else text


def top_tokens_after(reply: Mapping[str, Any], prefix: str, n_asked: int) -> TopTokens:
    """The tokens listed for the position right after `prefix`; `n_asked` were asked for.

    UnusableReplyError unless the text begins with the prefix, and a token with log-probabilities where it ends.
    """
    written = b""
    # Each token has at least one byte, which bounds the number of tokens of the prefix.
    for token, log_p, listed in _positions(reply, len(prefix.encode()) + 1):
        if written.lstrip() == prefix.encode():
            if len(listed) > n_asked + SPARE:
                raise UnusableReplyError(f"the reply lists {len(listed):,} tokens, {n_asked:,} were asked for")
            return _top_tokens(token, log_p, listed)
        written += token
    if not written.lstrip().startswith(prefix.encode()):
        raise _other_beginning(prefix)
    raise UnusableReplyError(f"no token of the answer begins where {prefix} ends")


def first_position(reply: Mapping[str, Any]) -> Position:
    """The first token of the answer; UnusableReplyError if there is none."""
    found = _positions(reply, 1)
    if not found:
        raise UnusableReplyError("the reply has no token")
    return found[0]


def _other_beginning(prefix: str) -> UnusableReplyError:
    return UnusableReplyError(f"the answer does not begin with {prefix}; try another prefill", may_differ=True)


def _positions(reply: Mapping[str, Any], most: int) -> list[Position]:
    """For each of the first written tokens."""
    if _thought(reply):
        raise NoLogprobsError("it thinks before it answers, and log-probabilities would be those after one thought")
    logprobs = _choice(reply).get("logprobs")
    if not logprobs:
        raise NoLogprobsError("the reply has no logprobs")
    with expecting("the logprobs of the reply are not in OpenAI's format"):
        if logprobs.get("content"):
            entries = logprobs["content"][:most]
            return [(*_entry(entry), [_entry(other) for other in entry["top_logprobs"]]) for entry in entries]
        columns = zip(*(logprobs[name][:most] for name in COLUMNS), strict=True)
        return [
            (t.encode(), _told(p), [(other.encode(), _told(its)) for other, its in top.items()])
            for t, p, top in columns
        ]


def _thought(reply: Mapping[str, Any]) -> bool:
    """Whether hidden tokens were written before the answer, as services and open servers tell it."""
    counts = dict_of(dict_of(reply.get("usage")).get("completion_tokens_details"))
    message = dict_of(_choice(reply).get("message"))
    return any((counts.get("reasoning_tokens"), message.get("reasoning_content"), message.get("reasoning")))


def _entry(entry: Mapping[str, Any]) -> tuple[bytes, float]:
    written = entry.get("bytes")
    if written is not None and not isinstance(written, list):  # bytes(n) would make n zeros
        raise UnusableReplyError(f"bytes of a token in the reply are {shown(written)}, expected a list")
    return entry["token"].encode() if written is None else bytes(written), _told(entry["logprob"])


def _told(value: object) -> float:
    """The value as from `log_probability`, with NaN for null, which tells nothing of the token."""
    return math.nan if value is None else log_probability(value)


def log_probability(value: object) -> float:
    """The value as a float; UnusableReplyError unless it is a number, of any size."""
    try:
        number = float(value) if type(value) in (int, float) else math.nan
    except OverflowError:  # a whole number of hundreds of digits
        number = math.nan
    if math.isnan(number):
        raise UnusableReplyError(
            f"a log-probability in the reply is {shown(value)}, expected a number, and not NaN, null or text"
        )
    return number


def _top_tokens(token: bytes, log_p: float, listed: list[tuple[bytes, float]]) -> TopTokens:
    if not listed:
        raise UnusableReplyError("the top_logprobs of the reply are empty")
    known = [(other, p) for other, p in listed if p > NOT_KNOWN and p != CLIPPED]
    if _mass(known) > 1 + ROUNDING:
        raise UnusableReplyError(f"the probabilities in the reply sum to {_mass(known):.4g}")
    # Some servers list the drawn token although it is not among the most probable ones.
    smallest = min((p for other, p in known if other != token), default=0.0)
    if log_p > NOT_KNOWN and token not in [other for other, _ in listed]:
        known.append((token, log_p))
    left = math.log(max(0.0, 1 - _mass(known)) + ROUNDING)
    tokens, log_probabilities = zip(*known, strict=True) if known else ((), ())
    untold = frozenset(other for other, p in listed if math.isnan(p))
    return TopTokens(tokens, log_probabilities, min(smallest, left), left, untold)


def _mass(tokens: list[tuple[bytes, float]]) -> float:
    return sum(math.exp(min(p, 1.0)) for _, p in tokens)


def _choice(reply: Mapping[str, Any]) -> dict[str, Any]:
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise UnusableReplyError("the reply has no choices")
    return choices[0]
