"""What a language model must be able to do: the contract of all back ends.

One battery of tests runs every implementation of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from policy_extraction.prompts._template import Prompt


@dataclass(frozen=True)
class Scores:
    """What was measured for some of the prompts.

    Parameters
    ----------
    numbers
        Which prompts these are, shape (n,).
    log_probability
        Natural logarithm of the probability, among all tokens and at temperature 1, that the answer begins with the
        word, shape (n, W). Where it is censored, its upper bound.
    censored
        Where the back end says only that the probability is at most this, shape (n, W).
    """

    numbers: np.ndarray
    log_probability: np.ndarray
    censored: np.ndarray


@runtime_checkable
class Backend(Protocol):
    """A language model that can be asked how probable answers are, and to write answers.

    Attributes
    ----------
    name
        For people, and for the coordinate `model`.
    identity
        Changes when the model does; key of what is kept on disk. Empty where it cannot be known: then nothing is kept.
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
        """Raise InputError for what would make the measurement fail, before it begins.

        `prompts` are a few of those that will be asked, the longest among them.
        """
        ...

    def score(self, prompts: Sequence[Prompt], words: Sequence[str]) -> Iterator[Scores]:
        """The log-probability of each word as the answer to each prompt, in portions and in any order.

        Events are disjoint: where one word begins another one, the shorter is the event that it is not continued to the
        longer. What was handed over is measured for good, so that an interrupted measurement can go on.
        """
        ...

    def generate(
        self, prompts: Sequence[Prompt], *, max_tokens: int, temperature: float = 1.0, seed: int = 0
    ) -> list[str]:
        """What the model writes after each prompt's `answer_prefix`, sampled; greedy at temperature 0."""
        ...

    def tokens(self, words: Sequence[str]) -> list[str]:
        """How the model spells each word as an answer, for the coordinate `word_tokens`; '' where that is unknown."""
        ...
