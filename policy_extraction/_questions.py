"""What a model is asked: every memory in every presentation order of the words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from meanfield import InputError, MemorySpace
from policy_extraction._chat import render
from policy_extraction._load import LanguageModel
from policy_extraction._template import Payoffs, Template
from policy_extraction._tokens import Question, questions

Memory = Sequence[tuple[int, int]]


def orders(words: Sequence[str]) -> list[tuple[str, ...]]:
    """All W! presentation orders; the first is the given one."""
    return list(permutations(words))


def all_memories(words: Sequence[str], memory_length: int) -> list[Memory]:
    """The memories of all states, in the order of `MemorySpace`."""
    space = MemorySpace(len(words), memory_length)
    return [space.memory(state) for state in range(space.n_states)]


def long_memories(words: Sequence[str], memory_length: int) -> list[Memory]:
    """A few full memories: what is wrong with words or context length shows in them before all are written out."""
    pairs = [(0, 0), (0, 1), (1, 0), *((word, word) for word in range(1, len(words)))]
    return [[pair] * memory_length for pair in pairs]


def ask(
    language_model: LanguageModel,
    words: Sequence[str],
    memories: Sequence[Memory],
    template: Template,
    payoffs: Payoffs,
) -> list[list[Question]]:
    """For each presentation order the questions of all memories; their answers are in the order of `words`.

    Raises
    ------
    InputError
        If the tokenizer can't tell the words apart, or a prompt is longer than the model's context.
    """
    asked = []
    for options in orders(words):
        texts = [
            render(
                language_model.tokenizer,
                template.prompt(options, [(words[own], words[partner]) for own, partner in memory], payoffs),
            )
            for memory in memories
        ]
        asked.append(questions(language_model.tokenizer, texts, words))
    longest = max(len(q.context) + max(map(len, q.answers)) for row in asked for q in row)
    limit = language_model.context_length
    if limit is not None and longest > limit:
        raise InputError(
            f"memory_length: the longest prompt has {longest} tokens, and the context of {language_model.name} "
            f"has {limit}; take a shorter memory"
        )
    return asked
