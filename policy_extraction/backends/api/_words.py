"""The probability of words from a server that lists only the most probable tokens, followed as a tree of texts."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

QUOTATION_MARKS = ("'", '"', "`")
RESOLVED = 0.01  # a word is measured if at most this share of its found probability is in doubt
# Softmaxes in single precision miss 1: sums of 1.0001 were seen with llama.cpp.
ROUNDING = 1e-3


@dataclass(frozen=True)
class TopTokens:
    """The most probable next tokens. Probabilities are natural logarithms."""

    tokens: tuple[bytes, ...]  # two tokens may have the same bytes
    log_probability: tuple[float, ...]
    unlisted: float  # upper bound for any single unlisted token
    left: float  # upper bound for all unlisted tokens together
    untold: Set[bytes] = frozenset()  # listed without a number

    def most(self, tokens: Set[bytes]) -> float:
        """Upper bound, as a logarithm, for the unlisted ones of these tokens together."""
        if tokens & self.untold:
            return self.left
        n_unlisted = len(tokens - set(self.tokens))
        return min(self.left, self.unlisted + math.log(n_unlisted)) if n_unlisted else -math.inf


Ask = Callable[[str], Awaitable[TopTokens]]


def openings_after(prefix: str) -> tuple[str, ...]:
    """The texts that may stand between an answer prefix and a word.

    After an opening quotation mark this is one space, because a second mark would close the quotation. Elsewhere it is
    one space or up to two line breaks, and a quotation mark.
    """
    if prefix.endswith(QUOTATION_MARKS):
        return "", " "
    return tuple(space + mark for space in ("", " ", "\n", "\n\n") for mark in ("", *QUOTATION_MARKS))


async def measure(
    words: Sequence[str], ask: Ask, follow_ups: int, openings: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Log-probability of each word, and whether it is only an upper bound; both of shape (W,).

    Listed tokens that spell a word are added. A token that begins words is followed by another question where it
    matters. The unlisted tokens that spell or begin a word are bounded together: by their number times the least listed
    probability, and by what the list leaves of 1. Tokens of a whole word and a sign, such as `his'`, count if they are
    listed; vocabularies separate letters from punctuation, so there are hardly any others. A word is measured if this
    bound and the tokens that were not followed are at most 1 % of its found probability. Otherwise it is censored, and
    its upper bound is the sum of all.

    `ask` gives the next tokens after a text that follows the answer prefix, at first the empty text, and then at most
    `follow_ups` times. `openings` are texts that may stand before a word, among them the empty one.
    """
    search = _Search([((opening + word).encode(), i) for i, word in enumerate(words) for opening in openings])
    search.add(_Text(b""), await ask(""))
    for _ in range(follow_ups):
        text = search.worth_following()
        if text is None:
            break
        search.add(text, await ask(text.written.decode()))
    return search.result()


def begins_anew(top: TopTokens, prefix: str, words: Sequence[str]) -> float:
    """The probability of the tokens that begin the answer prefix again, and none of the words."""
    mass = 0.0
    for token, log_p in zip(top.tokens, top.log_probability, strict=True):
        start = token.strip()
        if start and prefix.encode().startswith(start) and not any(word.encode().startswith(start) for word in words):
            mass += np.exp(log_p)
    return float(mass)


class _Text(NamedTuple):
    """A text that begins words; `word` is the number of the word that it already is, unless a longer one follows."""

    written: bytes
    word: int | None = None


class _Search:
    """The probabilities known so far, as natural logarithms; a spelling comes with the number of its word."""

    def __init__(self, spellings: Sequence[tuple[bytes, int]]) -> None:
        self.spellings = spellings
        self.found = np.full(1 + max(i for _, i in spellings), -np.inf)
        self.unlisted = self.found.copy()
        self.pending: dict[_Text, float] = {_Text(b""): 0.0}  # not followed yet

    def add(self, text: _Text, top: TopTokens) -> None:
        """Replace a pending text by what may follow it."""
        before = self.pending.pop(text)
        word = self._is(text)
        away = -np.inf  # probability of going on to a longer word
        for token, log_p in zip(top.tokens, top.log_probability, strict=True):
            longer = _Text(text.written + token, word)
            whole = self._whole(longer.written)
            if not token:  # the end of the answer
                continue
            if self._begun(longer.written):
                self.pending[longer] = np.logaddexp(self.pending.get(longer, -np.inf), before + log_p)
            elif whole is None or whole == word:
                continue
            else:
                self.found[whole] = np.logaddexp(self.found[whole], before + log_p)
            away = np.logaddexp(away, log_p)
        begun = {i: self._next(text.written, i) for i in self._begun(text.written)}
        for i, tokens in begun.items():
            self.unlisted[i] = np.logaddexp(self.unlisted[i], before + top.most(tokens))
        if word is not None:
            with np.errstate(divide="ignore"):
                rest = np.log(max(0.0, -np.expm1(away)))
            self.found[word] = np.logaddexp(self.found[word], before + rest)
            # Unlisted tokens were counted for this word, but may go on to longer ones.
            bound = before + top.most(set().union(*begun.values()))
            self.unlisted[word] = np.logaddexp(self.unlisted[word], bound)

    def worth_following(self) -> _Text | None:
        """The most probable pending text that leaves a word in doubt."""
        unresolved = self._unresolved()
        in_doubt = np.logaddexp(unresolved, self.unlisted) > self.found + np.log(RESOLVED)
        measurable = self.unlisted <= np.logaddexp(self.found, unresolved) + np.log(RESOLVED)
        worth = [
            text
            for text, log_p in self.pending.items()
            # The bound of a word that can't be measured stays close to the unlisted tokens.
            if text.written == text.written.decode(errors="ignore").encode()
            and any(in_doubt[i] and (measurable[i] or log_p > self.unlisted[i]) for i in self._of(text))
        ]
        return max(worth, key=lambda text: self.pending[text], default=None)

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """The log-probability of each word, or its upper bound, and which of the two it is."""
        in_doubt = np.logaddexp(self._unresolved(), self.unlisted)
        censored = in_doubt > self.found + np.log(RESOLVED)
        bound = np.minimum(0.0, np.logaddexp(self.found, in_doubt))
        return np.where(censored, bound, self.found), censored

    def _unresolved(self) -> np.ndarray:
        """The most that texts which were not followed can add to each word, shape (W,)."""
        result = np.full(len(self.found), -np.inf)
        for text, log_p in self.pending.items():
            for i in self._of(text):
                result[i] = np.logaddexp(result[i], log_p)
        return result

    def _is(self, text: _Text) -> int | None:
        """The word that the text is, or was before a longer one began."""
        whole = self._whole(text.written)
        return text.word if whole is None else whole

    def _whole(self, text: bytes) -> int | None:
        """The longest word that the text is or starts with."""
        forms = [(len(form), i) for form, i in self.spellings if text.startswith(form) and _ends(text[len(form) :])]
        return max(forms)[1] if forms else None

    def _begun(self, text: bytes) -> list[int]:
        """The words that the text begins without being whole."""
        return sorted({i for form, i in self.spellings if form.startswith(text) and form != text})

    def _next(self, text: bytes, word: int) -> set[bytes]:
        """The tokens that continue the text towards the end of a word or up to it."""
        ends = [form[len(text) :] for form, i in self.spellings if i == word and form.startswith(text)]
        return {end[:length] for end in ends for length in range(1, len(end) + 1)}

    def _of(self, text: _Text) -> set[int]:
        """The words that a pending text may become."""
        word = self._is(text)
        return {*self._begun(text.written), *(() if word is None else (word,))}


def _ends(rest: bytes) -> bool:
    """Whether a word ends before this text."""
    return not rest or not rest.decode(errors="replace")[0].isalnum()
