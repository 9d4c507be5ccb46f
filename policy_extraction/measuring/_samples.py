"""Answers that a model writes, for services that give no log-probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meanfield import ModelError
from policy_extraction.backends._backend import Backend
from policy_extraction.measuring._answers import Answers, Memory
from policy_extraction.measuring._spoken import answer_length, derived_seed, speak
from policy_extraction.prompts._orders import Order
from policy_extraction.prompts._template import Payoffs, Prompt, Template

AT_ONCE = 64  # answers that an interrupt can lose
MOST_TRIES = 100  # answers without a word before there is an error

Said = tuple[Memory, int]
"""A memory, and the number of an answer to it."""


@dataclass
class SampledAnswers:
    """Counts of words in new answers to memories, which are kept with other answers.

    Answers to a memory are numbered, and each next one takes the next of the presented orders. The same calls in
    another process give the same answers, as far as they are kept.
    """

    backend: Backend
    words: Sequence[str]
    template: Template
    payoffs: Payoffs
    presented: Sequence[Order]
    temperature: float
    seed: int
    answers: Answers

    def __post_init__(self) -> None:
        self._taken: Counter[Memory] = Counter()

    def __call__(self, memories: Sequence[Memory], number: int) -> np.ndarray:
        """Counts of each word in `number` further answers to each memory, shape (n, W)."""
        said: list[Said] = []
        for memory in memories:
            said += [(memory, self._taken[memory] + i) for i in range(number)]
            self._taken[memory] += number
        kept = self.answers.said(said, self.temperature)
        missing = [each for each in said if each not in kept]
        with self.answers.telling(self.backend.name):
            for first in range(0, len(missing), AT_ONCE):
                some = missing[first : first + AT_ONCE]
                self.answers.put_said(some, self.temperature, self._asked(some))
        if missing:
            kept = self.answers.said(said, self.temperature)
        found = np.array([kept[each] for each in said]).reshape(len(memories), number)
        return (found[..., None] == np.arange(len(self.words))).sum(1)

    def _asked(self, said: Sequence[Said]) -> list[int]:
        """Numbers of the words that the model says."""
        (memory, number), *_ = said
        spoken = speak(
            self.backend,
            [self._prompt(*each) for each in said],
            [1] * len(said),
            self.words,
            temperature=self.temperature,
            # What is asked first is asked once, so that no two calls have the same random numbers.
            seed=derived_seed(self.seed, len(memory), number, *(word for pair in memory for word in pair)),
            max_tokens=answer_length(self.backend, self.words),
            max_tries=MOST_TRIES,
        )
        if not all(spoken.words):
            raise ModelError(
                f"model = {self.backend.name}: none of {MOST_TRIES} answers to a prompt began with "
                f"{' or '.join(self.words)}"
            )
        return [words[0] for words in spoken.words]

    def _prompt(self, memory: Memory, number: int) -> Prompt:
        heard = [(self.words[own], self.words[partner]) for own, partner in memory]
        return self.template.prompt(self.presented[number % len(self.presented)], heard, self.payoffs)
