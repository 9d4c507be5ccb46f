"""Words drawn by letting a model write, and what counts as a word.

The answer of a round is expected right after the prompt's answer prefix. What is no word there is discarded and
generated again, as in [004] SI "Prompt Structure". Answers to one prompt are independent, so the words that remain have
the law of the model's answers on condition that they are words.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

import numpy as np

from meanfield import InputError
from policy_extraction.backends._backend import Backend
from policy_extraction.prompts._template import Prompt, Template

GROWTH = 4  # copies asked for in the next call over those in this one, at least, while answers are missing
RESERVE = 2  # copies asked for over those expected to hold a word
UNKNOWN_LENGTH = 8  # tokens to generate where a back end does not say how it spells the words


class Spoken(NamedTuple):
    """What a model said.

    Attributes
    ----------
    words
        For each prompt the numbers of the words said, as many as were asked for or, where tries ran out, fewer.
    generated
        Answers generated for each prompt, shape (prompts,).
    valid
        How many of these were a word.
    """

    words: list[list[int]]
    generated: np.ndarray
    valid: np.ndarray


def said(text: str, words: Sequence[str]) -> int | None:
    """The number of the word that a text begins with, the longest of several; None where it begins with none.

    The word ends where the text does or where no letter or digit follows: 'history' does not say 'his'.
    """
    begun = [word for word in words if text.startswith(word) and not text[len(word) : len(word) + 1].isalnum()]
    return words.index(max(begun, key=len)) if begun else None


def check_prefix(template: Template) -> None:
    """InputError where an answer starts after a space.

    Most vocabularies make the space part of the word, so that a word is read off the model as the continuation of what
    stands before the space; generated after a space of its own, it has another law.
    """
    if template.answer_prefix != template.answer_prefix.rstrip():
        raise InputError(
            f"template {template.name}: its answer prefix ends with a space, after which the law of words is not "
            "the one that is extracted; expected a prefix without it, as one that ends with a quotation mark"
        )


def answer_length(backend: Backend, words: Sequence[str]) -> int:
    """Tokens that the longest word takes, so that nothing but the word is generated; warns where others take fewer."""
    spelled = backend.tokens(words)
    if not all(spelled):
        return UNKNOWN_LENGTH
    lengths = [len(numbers.split()) for numbers in spelled]
    if len(set(lengths)) > 1:
        warnings.warn(
            f"words {', '.join(words)} have {', '.join(map(str, lengths))} tokens: a shorter one counts as said only "
            "where no letter follows, and an extracted policy counts it whatever follows",
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
    """Answers to each prompt, `counts` of them, each one generated at most `max_tries` times.

    The first call asks for `copies` of a prompt a missing answer: one, so that a model that keeps to the template costs
    nothing more. Later ones ask for as many as it should take, so that a model that seldom does costs few calls.
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
    """Copies to ask for where of so many answers so many were words; one where most of them were."""
    return 1 if 2 * valid >= generated else ceil(RESERVE * generated / max(valid, 1))


def derived_seed(*seeds: int) -> int:
    """A seed of its own for each tuple of numbers."""
    return int(np.random.SeedSequence(seeds).generate_state(1)[0])
