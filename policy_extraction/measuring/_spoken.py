"""Words drawn by letting a model write.

A word is expected right after the prompt's answer prefix. Other answers are discarded and generated again, as in [004]
SI "Prompt Structure". Answers to a prompt are independent, so the remaining words have the distribution of the model's
answers, given that they are words.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from math import ceil
from typing import NamedTuple

import numpy as np

from meanfield import InputError, ModelError
from policy_extraction.backends._backend import Backend
from policy_extraction.measuring._lazy import answers_of
from policy_extraction.measuring._sampling import check_temperature
from policy_extraction.prompts._games import Asked, Game, Memory
from policy_extraction.prompts._orders import orders
from policy_extraction.prompts._template import Payoffs, Prompt, Template

AT_ONCE = 64  # answers that an interrupt can lose
MOST_TRIES = 100  # answers without a word before there is an error
GROWTH = 4  # least factor of copies from one call to the next, while answers are missing
RESERVE = 2  # factor of copies over the number that is expected to hold a word
UNKNOWN_LENGTH = 8  # tokens to generate if a back end does not say how it spells the words


class Spoken(NamedTuple):
    """The words that a model said."""

    words: list[list[int]]  # numbers of the words for each prompt, fewer than asked for if tries ran out
    generated: np.ndarray  # answers for each prompt, shape (prompts,)
    valid: np.ndarray  # those that were a word


def said(text: str, words: Sequence[str]) -> int | None:
    """The number of the longest word that begins the text, or None: 'history' does not say 'his'."""
    begun = [word for word in words if text.startswith(word) and not text[len(word) : len(word) + 1].isalnum()]
    return words.index(max(begun, key=len)) if begun else None


def check_prefix(template: Template) -> None:
    """InputError if an answer starts after a space, which most vocabularies make part of the word."""
    if template.answer_prefix != template.answer_prefix.rstrip():
        raise InputError(
            f"template {template.name}: its answer prefix ends with a space, after which words have another "
            "distribution than the extracted one; expected one without it, such as one that ends with a quotation mark"
        )


def answer_length(backend: Backend, words: Sequence[str]) -> int:
    """The number of tokens of the longest word; warns if other words have fewer."""
    spelled = backend.tokens(words)
    if not all(spelled):
        return UNKNOWN_LENGTH
    lengths = [len(numbers.split()) for numbers in spelled]
    if len(set(lengths)) > 1:
        warnings.warn(
            f"words {', '.join(words)} have {', '.join(map(str, lengths))} tokens: a shorter one counts as said only "
            "if no letter follows, while an extracted policy counts it whatever follows",
            stacklevel=3,
        )
    return max(lengths)


def speak(
    backend: Backend,
    prompts: Sequence[Prompt],
    counts: Sequence[int],
    words: Sequence[str],
    *,
    temperature: float,
    seed: int,
    max_tokens: int,
    max_tries: int,
    copies: int = 1,
) -> Spoken:
    """`counts` words for each prompt, each after at most `max_tries` answers.

    The first call asks for `copies` answers a word, later ones for as many as should suffice.
    """
    spoken: list[list[int]] = [[] for _ in prompts]
    generated, valid = np.zeros((2, len(prompts)), dtype=np.int64)
    tried, call = 0, 0
    while tried < max_tries:
        copies = min(copies, max_tries - tried)
        asked = [i for i, count in enumerate(counts) for _ in range((count - len(spoken[i])) * copies)]
        if not asked:
            break
        texts = backend.generate(
            [prompts[i] for i in asked], max_tokens=max_tokens, temperature=temperature, seed=derived_seed(seed, call)
        )
        for i, text in zip(asked, texts, strict=True):
            word = said(text, words)
            generated[i] += 1
            if word is not None:
                valid[i] += 1
                if len(spoken[i]) < counts[i]:
                    spoken[i].append(word)
        tried, call = tried + copies, call + 1
        copies = max(copies * GROWTH, copies_needed(int(generated.sum()), int(valid.sum())))
    return Spoken(spoken, generated, valid)


def copies_needed(generated: int, valid: int) -> int:
    """The copies to ask for, given the answers and words so far; one if most answers were words."""
    return 1 if 2 * valid >= generated else ceil(RESERVE * generated / max(valid, 1))


def derived_seed(*seeds: int) -> int:
    """A seed that depends on all these numbers."""
    return int(np.random.SeedSequence(seeds).generate_state(1)[0])


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
