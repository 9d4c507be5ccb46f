"""The probability of words, where a server lists only the most probable tokens.

A word may be one token or several, and several tokens may spell its beginning. What is listed is followed like a tree
of texts; what is not listed is bounded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np

OPENINGS = b" \t\r\n'\"`"  # what may stand before a word without making it another one
RESOLVED = 0.01  # a word is measured where at most this share of its probability is in doubt
# Log-probabilities come from softmaxes in single precision: those of llama.cpp were seen to sum to 1.0001.
ROUNDING = 1e-3


@dataclass(frozen=True)
class TopTokens:
    """The most probable next tokens.

    Parameters
    ----------
    tokens
        Their bytes; two tokens may have the same.
    log_probability
        Natural logarithms, as many.
    unlisted
        Natural logarithm of the most that any token not listed can have.
    """

    tokens: tuple[bytes, ...]
    log_probability: tuple[float, ...]
    unlisted: float


Ask = Callable[[str], Awaitable[TopTokens]]


async def measure(words: Sequence[str], ask: Ask, follow_ups: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-probability of each word, and whether it is only an upper bound, both of shape (W,).

    The listed tokens that spell a word, with or without a space or quotation mark before it, are added. A token that
    begins words is followed by another question where it matters. A word is measured if what was found of it is at
    least what one token that is not listed could have, and at most 1 % of it is in tokens that were not followed.
    Otherwise it is censored, and the bound is all of this together.

    Parameters
    ----------
    words
        The W words.
    ask
        The next tokens after a text that follows the answer prefix; first asked with the empty text.
    follow_ups
        Questions after the first one, at most.
    """
    search = _Search([word.encode() for word in words])
    search.add(b"", await ask(""))
    for _ in range(follow_ups):
        text = search.worth_following()
        if text is None:
            break
        search.add(text, await ask(text.decode()))
    return search.result()


def begins_anew(top: TopTokens, prefix: str, words: Sequence[str]) -> float:
    """The probability of the tokens with which a whole answer begins, its prefix included, but none of the words."""
    mass = 0.0
    for token, log_p in zip(top.tokens, top.log_probability, strict=True):
        start = token.strip()
        if start and prefix.encode().startswith(start) and not any(word.encode().startswith(start) for word in words):
            mass += np.exp(log_p)
    return float(mass)


class _Search:
    """What is known so far; all numbers are natural logarithms."""

    def __init__(self, words: Sequence[bytes]) -> None:
        self.words = words
        self.found = [-np.inf] * len(words)
        self.unlisted = [-np.inf] * len(words)
        self.pending: dict[bytes, float] = {b"": 0.0}  # beginnings of words, not followed yet

    def add(self, text: bytes, top: TopTokens) -> None:
        """Replace a pending text by what may follow it."""
        before = self.pending.pop(text)
        away = -np.inf  # to a word that continues the one that the text is
        for token, log_p in zip(top.tokens, top.log_probability, strict=True):
            longer = text + token
            whole, begun = self._spelled(longer)
            if begun:
                self.pending[longer] = _add(self.pending.get(longer, -np.inf), before + log_p)
            elif whole is None or self.words[whole] == _bare(text):
                continue
            else:
                self.found[whole] = _add(self.found[whole], before + log_p)
            away = _add(away, log_p)
        for i in self._beginning_with(_bare(text)):
            self.unlisted[i] = _add(self.unlisted[i], before + top.unlisted)
        if _bare(text) in self.words:
            i = self.words.index(_bare(text))
            with np.errstate(divide="ignore"):
                rest = np.log(max(0.0, -np.expm1(away)))
            self.found[i] = _add(self.found[i], before + rest)

    def worth_following(self) -> bytes | None:
        """The most probable of the pending texts that leave a word in doubt."""
        in_doubt = self._unresolved() > np.array(self.found) + np.log(RESOLVED)
        worth = [
            text
            for text, log_p in self.pending.items()
            if _is_text(text) and any(in_doubt[i] and self._matters(i, log_p) for i in self._of(text))
        ]
        return max(worth, key=lambda text: self.pending[text], default=None)

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """What was found of each word, or where that is not enough the upper bound, and which of the two it is."""
        unresolved, found, unlisted = self._unresolved(), np.array(self.found), np.array(self.unlisted)
        censored = (found < unlisted) | (unresolved > found + np.log(RESOLVED))
        bound = np.minimum(0.0, np.logaddexp(np.logaddexp(found, unlisted), unresolved))
        return np.where(censored, bound, found), censored

    def _matters(self, i: int, log_p: float) -> bool:
        """Of a word of which little or nothing is listed, the bound can't get much below what is not listed."""
        return self.found[i] >= self.unlisted[i] or log_p > self.unlisted[i]

    def _unresolved(self) -> np.ndarray:
        """What each word can still get from texts that were not followed, shape (W,)."""
        result = np.full(len(self.words), -np.inf)
        for text, log_p in self.pending.items():
            for i in self._of(text):
                result[i] = _add(result[i], log_p)
        return result

    def _spelled(self, text: bytes) -> tuple[int | None, bool]:
        """The longest word that the text is or starts with, and whether it is the beginning of a longer one."""
        text = _bare(text)
        whole = [i for i, word in enumerate(self.words) if text.startswith(word) and _ends(text[len(word) :])]
        return max(whole, key=lambda i: len(self.words[i]), default=None), bool(self._beginning_with(text))

    def _beginning_with(self, text: bytes) -> list[int]:
        return [i for i, word in enumerate(self.words) if word.startswith(text) and word != text]

    def _of(self, text: bytes) -> list[int]:
        """The words whose probability a pending text may be part of."""
        return [i for i, word in enumerate(self.words) if word.startswith(_bare(text))]


def _bare(text: bytes) -> bytes:
    return text.lstrip(OPENINGS)


def _ends(rest: bytes) -> bool:
    """Whether a word is over where this comes after it."""
    return not rest or not rest.decode(errors="replace")[0].isalnum()


def _is_text(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


def _add(a: float, b: float) -> float:
    return float(np.logaddexp(a, b))
