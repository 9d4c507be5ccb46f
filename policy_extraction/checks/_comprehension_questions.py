"""Questions about an agent's prompt, and their right answers."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from policy_extraction.prompts._template import Payoffs
from policy_extraction.prompts._toml import packaged_toml

PLAYERS = ("Player 1", "Player 2")
NUMBER = re.compile(r"[+-]?\d+")
# The answer format ends a value with a semicolon; a brace, a new line or the second key of a dict are as clear.
END_OF_VALUE = re.compile(r"[;}\n]|,\s*['\"]?reason")
QUOTATION_MARKS = "'\""

Memory = Sequence[tuple[str, str]]
Answer = int | str | frozenset[str]


class Kind(NamedTuple):
    """A row of [004] Table S2: name, category (Rules, Time, State), and the question with slots."""

    name: str
    category: str
    text: str


class Asked(NamedTuple):
    """A question as the agent reads it, and the right answer: a number, a word, or a set of words."""

    kind: str
    text: str
    answer: Answer


KINDS = tuple(Kind(name, **row) for name, row in packaged_toml("comprehension_004.toml").items())


def questions_about(memory: Memory, words: Sequence[str], payoffs: Payoffs) -> Iterator[Asked]:
    """All questions to an agent with this memory, kind by kind; Player 1 is the agent, Player 2 its partners."""
    texts = {kind.name: string.Template(kind.text) for kind in KINDS}

    def ask(kind: str, answer: Answer, **slots: object) -> Asked:
        return Asked(kind, texts[kind].substitute(slots), answer)

    points = [payoffs.of(*interaction) for interaction in memory]
    possible = (payoffs.success, payoffs.failure)
    yield ask("min_max", min(possible), lowest="lowest", player=PLAYERS[0])
    yield ask("min_max", max(possible), lowest="highest", player=PLAYERS[0])
    yield ask("actions", frozenset(words), player=PLAYERS[0])
    for (player, other), word, word_of_other in product((PLAYERS, PLAYERS[::-1]), words, words):
        pair = {"player": player, "other": other, "word": word, "word_of_other": word_of_other}
        yield ask("payoff", payoffs.of(word, word_of_other), **pair)
    yield ask("round", len(memory) + 1)
    for i, player in enumerate(PLAYERS):
        for number, interaction in enumerate(memory, start=1):
            yield ask("action_i", interaction[i], player=player, round=number)
            yield ask("points_i", points[number - 1], player=player, round=number)
        for word in words:
            yield ask("#actions", sum(said[i] == word for said in memory), player=player, word=word)
        yield ask("#points", sum(points), player=player)


def parse(text: str, like: Answer) -> Answer | None:
    """The value of an answer, or None unless it has the form of `like`.

    The text up to the end of the value must be a whole number, a word, or a list of words separated by commas, with or
    without brackets. Each may be quoted.
    """
    end = END_OF_VALUE.search(text)
    if end is None:
        return None
    value = text[: end.start()].strip()
    if isinstance(like, frozenset):
        listed = value.removeprefix("[").removesuffix("]").split(",")
        words = [_bare(word) for word in listed]
        return frozenset(words) if len(set(words)) == len(words) else None
    value = _bare(value)
    if isinstance(like, str):
        return value
    return int(value) if NUMBER.fullmatch(value) else None


def _bare(text: str) -> str:
    """A value without the quotation marks around it."""
    text = text.strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in QUOTATION_MARKS
    return text[1:-1] if quoted else text
