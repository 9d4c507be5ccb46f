"""Valid answers of an agent that writes: text, JSON or lines, for n items. A parser raises ReplyError for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from meanfield.toolbox import is_number
from policy_extraction._toolbox.json_replies import DECODER, ReplyError, is_text, shown
from theory.toolbox import KINDS


def parse_text(text: str, n: int = 0) -> str:
    """The answer on one line."""
    if not is_text(text):
        raise ReplyError("it is empty, or holds something that is no character")
    return _line(text)


def parse_norm(text: str, n: int = 1) -> dict[str, Any]:
    """One norm, a JSON object with content, kind and utility."""
    return _norm(_json(text))


def parse_norms(text: str, n: int) -> list[dict[str, Any]]:
    """n norms with different contents, a JSON list."""
    rows = _json(text)
    if not isinstance(rows, list) or len(rows) != n:
        raise ReplyError(f"it is not a JSON list of {n} norms")
    norms = [_norm(row) for row in rows]
    contents = [norm["content"] for norm in norms]
    for content in contents:
        if contents.count(content) > 1:
            raise ReplyError(f"it has the content {shown(content)} twice")
    return norms


def parse_abstract(text: str, n: int) -> dict[str, Any]:
    """A general norm for n norms, a JSON object with content, kind and weights."""

    def fits(weights: Any) -> bool:
        return isinstance(weights, list) and len(weights) == n and all(is_number(w) and w > 0 for w in weights)

    return _object(_json(text), "weights", fits, f"a list of {n} positive numbers")


def parse_themes(text: str, n: int) -> list[tuple[str, list[int]]]:
    """The themes of n norms, with each theme's norms, from n lines 'number: theme'.

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
    return list(themes.items())


PARSERS = {"create": parse_norms, "identify": parse_norm, "classify": parse_themes, "abstract": parse_abstract}
"""Parsers of replies that are not texts."""


def _norm(row: Any) -> dict[str, Any]:
    row = _object(row, "utility", lambda value: is_number(value) and 1 <= value <= 100, "a number from 1 to 100")
    return row | {"utility": float(row["utility"])}


def _json(text: str) -> Any:
    """The JSON value that begins the answer; many models explain it in text behind."""
    try:
        return DECODER.raw_decode(text.lstrip())[0]
    except ReplyError:
        raise
    except (ValueError, RecursionError):
        raise ReplyError("it does not begin with JSON in full") from None


def _object(row: Any, number: str, fits: Callable[[Any], bool], expected: str) -> dict[str, Any]:
    """A JSON object with a content on one line, a kind and a number or numbers."""
    rules = {"content": (is_text, "text"), "kind": (KINDS.__contains__, " or ".join(KINDS)), number: (fits, expected)}
    if not isinstance(row, dict):
        raise ReplyError(f"{shown(row)} is not a JSON object")
    if set(row) != set(rules):
        raise ReplyError(f"the keys are {shown(list(row))}, expected {shown(list(rules))}")
    for name, (right, wanted) in rules.items():
        if not right(row[name]):
            raise ReplyError(f"{name} is {shown(row[name])}, expected {wanted}")
    return {name: row[name] for name in rules} | {"content": _line(row["content"])}


def _line(text: str) -> str:
    return " ".join(text.split())
