"""The probability of words, where a server lists only the most probable tokens.

A word may be one token or several, and several tokens may spell its beginning. What is listed is followed like a tree
of texts; what is not listed is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

QUOTATION_MARKS = ("'", '"', "`")
RESOLVED = 0.01  # a word is measured where at most this share of what was found of it is in doubt
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
        Natural logarithm of the most that any one token not listed can have.
    left
        Natural logarithm of the most that all tokens not listed can have together.
    """

    tokens: tuple[bytes, ...]
    log_probability: tuple[float, ...]
    unlisted: float
    left: float

    def most(self, tokens: Set[bytes]) -> float:
        """Natural logarithm of the most that those of these tokens can have together that are not listed."""
        n_unlisted = len(tokens - set(self.tokens))
        return min(self.left, self.unlisted + math.log(n_unlisted)) if n_unlisted else -math.inf


Ask = Callable[[str], Awaitable[TopTokens]]


def openings_after(prefix: str) -> tuple[str, ...]:
    """What may stand between an answer prefix and a word without making it another answer.

    After an opening quotation mark that is one space: a second mark would close it, and the answer be empty. Elsewhere
    it is one space or up to two line breaks, and a quotation mark.
    """
    if prefix.endswith(QUOTATION_MARKS):
        return "", " "
    return tuple(space + mark for space in ("", " ", "\n", "\n\n") for mark in ("", *QUOTATION_MARKS))


async def measure(
    words: Sequence[str], ask: Ask, follow_ups: int, openings: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Log-probability of each word, and whether it is only an upper bound, both of shape (W,).

    The listed tokens that spell a word, with or without an opening before it, are added. A token that begins words is
    followed by another question where it matters. What is not listed is bounded for all tokens together that spell a
    word or begin it: by their number times the least one listed, and by what the list leaves. Tokens of a whole word
    and a sign after it, such as `his'`, count where they are listed; vocabularies part letters from punctuation, so
    that there are hardly any others. A word is measured if this and what is in tokens that were not followed are
    together at most 1 % of what was found of it. Otherwise it is censored, and the bound is all of this together.

    Parameters
    ----------
    words
        The W words.
    ask
        The next tokens after a text that follows the answer prefix; first asked with the empty text.
    follow_ups
        Questions after the first one, at most.
    openings
        What may stand before a word, nothing among it.
    """
    search = _Search([[(opening + word).encode() for opening in openings] for word in words])
    search.add(_Text(b""), await ask(""))
    for _ in range(follow_ups):
        text = search.worth_following()
        if text is None:
            break
        search.add(text, await ask(text.written.decode()))
    return search.result()


def begins_anew(top: TopTokens, prefix: str, words: Sequence[str]) -> float:
    """The probability of the tokens with which a whole answer begins, its prefix included, but none of the words."""
    mass = 0.0
    for token, log_p in zip(top.tokens, top.log_probability, strict=True):
        start = token.strip()
        if start and prefix.encode().startswith(start) and not any(word.encode().startswith(start) for word in words):
            mass += np.exp(log_p)
    return float(mass)


class _Text(NamedTuple):
    """A text that begins words, and the number of the word that it is unless it goes on to a longer one."""

    written: bytes
    word: int | None = None


class _Search:
    """What is known so far; all numbers are natural logarithms."""

    def __init__(self, spellings: Sequence[Sequence[bytes]]) -> None:
        self.spellings = spellings
        self.found = np.full(len(spellings), -np.inf)
        self.unlisted = np.full(len(spellings), -np.inf)
        self.pending: dict[_Text, float] = {_Text(b""): 0.0}  # not followed yet

    def add(self, text: _Text, top: TopTokens) -> None:
        """Replace a pending text by what may follow it."""
        before = self.pending.pop(text)
        word = self._is(text)
        away = -np.inf  # to words that continue the one that the text is
        for token, log_p in zip(top.tokens, top.log_probability, strict=True):
            longer = _Text(text.written + token, word)
            whole = self._whole(longer.written)
            if not token:  # the end of the answer
                continue
            if self._begun(longer.written):
                self.pending[longer] = _add(self.pending.get(longer, -np.inf), before + log_p)
            elif whole is None or whole == word:
                continue
            else:
                self.found[whole] = _add(self.found[whole], before + log_p)
            away = _add(away, log_p)
        begun = {i: self._next(text.written, i) for i in self._begun(text.written)}
        for i, tokens in begun.items():
            self.unlisted[i] = _add(self.unlisted[i], before + top.most(tokens))
        if word is not None:
            with np.errstate(divide="ignore"):
                rest = np.log(max(0.0, -np.expm1(away)))
            self.found[word] = _add(self.found[word], before + rest)
            # What is not listed was taken for this word, but may go on to the longer ones.
            self.unlisted[word] = _add(self.unlisted[word], before + top.most(set().union(*begun.values())))

    def worth_following(self) -> _Text | None:
        """The most probable of the pending texts that leave a word in doubt."""
        unresolved = self._unresolved()
        in_doubt = np.logaddexp(unresolved, self.unlisted) > self.found + np.log(RESOLVED)
        measurable = self.unlisted <= np.logaddexp(self.found, unresolved) + np.log(RESOLVED)
        worth = [
            text
            for text, log_p in self.pending.items()
            # The bound of a word that can't be measured does not get much below what is not listed.
            if _is_text(text.written)
            and any(in_doubt[i] and (measurable[i] or log_p > self.unlisted[i]) for i in self._of(text))
        ]
        return max(worth, key=lambda text: self.pending[text], default=None)

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """What was found of each word, or where that is not enough the upper bound, and which of the two it is."""
        in_doubt = np.logaddexp(self._unresolved(), self.unlisted)
        censored = in_doubt > self.found + np.log(RESOLVED)
        bound = np.minimum(0.0, np.logaddexp(self.found, in_doubt))
        return np.where(censored, bound, self.found), censored

    def _unresolved(self) -> np.ndarray:
        """What each word can still get from texts that were not followed, shape (W,)."""
        result = np.full(len(self.spellings), -np.inf)
        for text, log_p in self.pending.items():
            for i in self._of(text):
                result[i] = _add(result[i], log_p)
        return result

    def _is(self, text: _Text) -> int | None:
        """The word that the text is, or was before it began to go on to a longer one."""
        whole = self._whole(text.written)
        return text.word if whole is None else whole

    def _whole(self, text: bytes) -> int | None:
        """The longest word that the text is or starts with."""
        forms = [
            (len(form), i)
            for i, forms in enumerate(self.spellings)
            for form in forms
            if text.startswith(form) and _ends(text[len(form) :])
        ]
        return max(forms)[1] if forms else None

    def _begun(self, text: bytes) -> list[int]:
        """The words of which the text is a beginning and not the whole."""
        return [i for i, forms in enumerate(self.spellings) if any(f.startswith(text) and f != text for f in forms)]

    def _next(self, text: bytes, i: int) -> set[bytes]:
        """The tokens that go on from the text to the end of a word or towards it."""
        ends = [form[len(text) :] for form in self.spellings[i] if form.startswith(text)]
        return {end[:length] for end in ends for length in range(1, len(end) + 1)}

    def _of(self, text: _Text) -> set[int]:
        """The words whose probability a pending text may be part of."""
        word = self._is(text)
        return {*self._begun(text.written), *(() if word is None else (word,))}


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
