"""Valid answers of an agent that writes: text, JSON or lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from policy_extraction._toolbox.json_replies import DECODER, ReplyError, is_text, shown

KINDS = ("injunctive", "descriptive")
LARGEST = 1e9  # limit of numbers, so that no sum overflows


class WrittenNorm(NamedTuple):
    """A norm as a model wrote it."""

    content: str
    kind: str
    utility: float


class AbstractNorm(NamedTuple):
    """A general norm as a model wrote it, with the weights of the norms under it."""

    content: str
    kind: str
    weights: tuple[float, ...]


Theme = tuple[str, tuple[int, ...]]


def parse_text(text: str) -> str:
    """The answer on one line; ReplyError if it is empty."""
    if not is_text(text):
        raise ReplyError("it is empty, or holds what is no character")
    return _line(text)


def parse_norm(text: str) -> WrittenNorm:
    """One norm, a JSON object with content, kind and utility; ReplyError for anything else."""
    return _norm(_json(text))


def parse_norms(text: str, n: int) -> tuple[WrittenNorm, ...]:
    """n norms with different contents, a JSON list; ReplyError for anything else."""
    rows = _json(text)
    if not isinstance(rows, list) or len(rows) != n:
        raise ReplyError(f"it is not a JSON list of {n} norms")
    norms = tuple(_norm(row) for row in rows)
    _check_different("content", [norm.content for norm in norms])
    return norms


def parse_abstract(text: str, n: int) -> AbstractNorm:
    """A general norm for n norms, a JSON object with content, kind and weights; ReplyError for anything else."""
    row = _object(_json(text), ("content", "kind", "weights"))
    weights = row["weights"]
    if not isinstance(weights, list) or len(weights) != n or not all(_is_number(w) and w > 0 for w in weights):
        raise ReplyError(f"weights is {shown(weights)}, expected a list of {n} positive numbers")
    return AbstractNorm(_content(row), _kind(row), tuple(map(float, weights)))


def parse_themes(text: str, n: int) -> tuple[Theme, ...]:
    """The themes of n norms, with each theme's norms, from n lines 'number: theme'; ReplyError for anything else.

    Norms are numbered from 1 in the text and from 0 in the result. Case is ignored. Text after the last line is not
    read, except a theme too many.
    """
    themes: dict[str, list[int]] = {}
    lines = [line for line in text.splitlines() if line.strip()]
    for expected, line in enumerate(lines[:n], start=1):
        number, colon, theme = line.partition(":")
        if not colon or number.strip() != str(expected) or not is_text(theme):
            raise ReplyError(f"the line {shown(line)} is not {expected}, a colon and a theme")
        themes.setdefault(_line(theme).casefold(), []).append(expected - 1)
    if len(lines) < n or any(line.partition(":")[0].strip() == str(n + 1) for line in lines[n:]):
        raise ReplyError(f"it has {len(lines)} lines, expected one for each of {n} norms")
    return tuple((theme, tuple(numbers)) for theme, numbers in themes.items())


def _norm(row: Any) -> WrittenNorm:
    row = _object(row, ("content", "kind", "utility"))
    utility = row["utility"]
    if not _is_number(utility) or not 1 <= utility <= 100:
        raise ReplyError(f"utility is {shown(utility)}, expected a number from 1 to 100")
    return WrittenNorm(_content(row), _kind(row), float(utility))


def _json(text: str) -> Any:
    """The JSON value that begins the answer; many models explain it in text behind."""
    try:
        value, _ = DECODER.raw_decode(text.lstrip())
    except ReplyError:
        raise
    except (ValueError, RecursionError):
        raise ReplyError("it does not begin with JSON in full") from None
    return value


def _object(row: Any, keys: Sequence[str]) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise ReplyError(f"{shown(row)} is not a JSON object")
    if set(row) != set(keys):
        raise ReplyError(f"the keys are {shown(list(row))}, expected {shown(list(keys))}")
    return row


def _content(row: dict[str, Any]) -> str:
    content = row["content"]
    if not is_text(content):
        raise ReplyError(f"content is {shown(content)}, expected text")
    return _line(content)


def _kind(row: dict[str, Any]) -> str:
    if row["kind"] not in KINDS:
        raise ReplyError(f"kind is {shown(row['kind'])}, expected {' or '.join(KINDS)}")
    return row["kind"]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < LARGEST


def _check_different(what: str, texts: Sequence[str]) -> None:
    for text in texts:
        if texts.count(text) > 1:
            raise ReplyError(f"it has the {what} {shown(text)} twice")


def _line(text: str) -> str:
    return " ".join(text.split())
