"""The contract of all back ends; one battery of tests runs every implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from meanfield import InputError
from policy_extraction.prompts._template import Prompt


class NoLogProbabilitiesError(InputError):
    """The model gives no log-probabilities of its answers; it may still write answers."""


@dataclass(frozen=True)
class Scores:
    """The log-probabilities of the words as answers to some prompts.

    Parameters
    ----------
    numbers
        Numbers of the prompts, shape (n,).
    log_probability
        Natural logarithm of the probability, among all tokens and at temperature 1, that the answer begins with the
        word, shape (n, W); an upper bound where it is censored.
    censored
        Whether the log-probability is only an upper bound, shape (n, W).

    Examples
    --------
    The first of some prompts, with 'his' measured and 'her' known to have at most 0.3.

    >>> from policy_extraction.backends import Scores
    >>> scores = Scores(np.array([0]), np.log([[0.6, 0.3]]), np.array([[False, True]]))
    >>> np.exp(scores.log_probability).round(2)
    array([[0.6, 0.3]])
    """

    numbers: np.ndarray
    log_probability: np.ndarray
    censored: np.ndarray


@runtime_checkable
class Backend(Protocol):
    """A language model that gives probabilities of answers and writes answers.

    Attributes
    ----------
    name
        Name for people and for the coordinate `model`.
    identity
        Key of the answers kept on disk; it changes with the model. If it is empty, nothing is kept.
    provenance
        Numbers and strings for the attrs of a record, such as the number format of the weights.
    """

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> str: ...

    @property
    def provenance(self) -> dict[str, str | int | float]: ...

    def check(self, prompts: Sequence[Prompt], words: Sequence[str]) -> None:
        """Raise InputError if the measurement can't succeed; `prompts` are a few of its prompts, with the longest.

        It is a NoLogProbabilitiesError if answers can still be sampled.
        """
        ...

    def score(self, prompts: Sequence[Prompt], words: Sequence[str]) -> Iterator[Scores]:
        """The log-probability of each word as the answer to each prompt, in portions and in any order.

        The events are disjoint: if one word begins another, the shorter one is the event that it is not continued to
        the longer. A portion that was yielded is final, so that an interrupted measurement can go on.
        """
        ...

    def generate(
        self, prompts: Sequence[Prompt], *, max_tokens: int, temperature: float = 1.0, seed: int = 0
    ) -> list[str]:
        """Sampled texts that the model writes after each prompt's `answer_prefix`; greedy at temperature 0."""
        ...

    def tokens(self, words: Sequence[str]) -> list[str]:
        """The tokens of each word as an answer, for the coordinate `word_tokens`; '' if they are unknown."""
        ...


@runtime_checkable
class Submitting(Protocol):
    """A back end that can leave prompts with a server for hours, and knows them again in another process."""

    def score_later(
        self,
        prompts: Sequence[Prompt],
        words: Sequence[str],
        *,
        journal: Path | None,
        tell: Callable[[str], None],
        wait: bool = True,
    ) -> Iterator[Scores]:
        """Scores as from `Backend.score`. Submitted prompts are noted in the file `journal`, and not sent again.

        `tell` is told how far the server is. Without `wait` prompts are only submitted, if that can be done, and few
        or none are answered.
        """
        ...
