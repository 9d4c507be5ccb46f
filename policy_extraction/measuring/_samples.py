"""Answers that a model writes, for services that give no log-probabilities."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from meanfield import ModelError
from policy_extraction.backends._backend import Backend
from policy_extraction.measuring._lazy import answers_of
from policy_extraction.measuring._sampling import check_temperature
from policy_extraction.measuring._spoken import answer_length, check_prefix, derived_seed, speak
from policy_extraction.prompts._games import check_games
from policy_extraction.prompts._orders import orders
from policy_extraction.prompts._questions import Asked, Game, Memory
from policy_extraction.prompts._template import Payoffs, Template

AT_ONCE = 64  # answers that an interrupt can lose
MOST_TRIES = 100  # answers without a word before there is an error


def sampled_answers(
    backend: Backend,
    words: Sequence[str],
    memory_length: int,
    number: int,
    *,
    template: Template,
    payoffs: Payoffs,
    temperature: float,
    seed: int,
    cache: bool | str | os.PathLike[str],
) -> Callable[[Sequence[Memory]], np.ndarray]:
    """A function that counts each word in `number` further answers to each of n memories, shape (n, W).

    The orders take turns. Answers are numbered and kept, so the same calls in another process give the same ones.
    """
    check_games([tuple(words)], memory_length)
    check_temperature(temperature)
    check_prefix(template)
    temperature, presented, taken = float(temperature), orders(words), Counter[Memory]()
    game = Game(tuple(words), presented, memory_length, template, payoffs)
    answers = answers_of(backend, game, cache)

    def counts(memories: Sequence[Memory]) -> np.ndarray:
        said: list[Asked] = []  # with the number of an answer in the place of an order
        for memory in memories:
            said += [(memory, taken[memory] + i) for i in range(number)]
            taken[memory] += number
        kept = answers.said(said, temperature)
        missing = [each for each in said if each not in kept]
        with answers.telling(backend.name):
            for first in range(0, len(missing), AT_ONCE):
                some = missing[first : first + AT_ONCE]
                answers.put_said(some, temperature, asked(some))
        if missing:
            kept = answers.said(said, temperature)
        found = np.array([kept[each] for each in said]).reshape(len(memories), number)
        return (found[..., None] == np.arange(len(words))).sum(1)

    def asked(said: Sequence[Asked]) -> list[int]:
        """Numbers of the words that the model says."""
        (memory, number), *_ = said
        spoken = speak(
            backend,
            [game.prompt((each, n % len(presented))) for each, n in said],
            [1] * len(said),
            words,
            temperature=temperature,
            # The first question is asked once, so that no two calls have the same random numbers.
            seed=derived_seed(seed, len(memory), number, *(word for pair in memory for word in pair)),
            max_tokens=answer_length(backend, words),
            max_tries=MOST_TRIES,
        )
        if not all(spoken.words):
            raise ModelError(
                f"model = {backend.name}: none of {MOST_TRIES} answers to a prompt began with {' or '.join(words)}"
            )
        return [word for word, *_ in spoken.words]

    return counts
