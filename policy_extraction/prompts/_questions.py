"""The prompts of a game: every memory in every presentation order of the words."""

from __future__ import annotations

from collections.abc import Sequence

from meanfield import MemorySpace
from policy_extraction.prompts._orders import Order
from policy_extraction.prompts._template import Payoffs, Prompt, Template, longest

Memory = Sequence[tuple[int, int]]


def all_memories(n_words: int, memory_length: int) -> list[Memory]:
    """The memories of all states, in the order of `MemorySpace`."""
    space = MemorySpace(n_words, memory_length)
    return [space.memory(state) for state in range(space.n_states)]


def prompts(
    words: Sequence[str], presented: Sequence[Order], memories: Sequence[Memory], template: Template, payoffs: Payoffs
) -> list[Prompt]:
    """The prompts of all memories in the first presentation order, then in the next one."""
    named = [[(words[own], words[partner]) for own, partner in memory] for memory in memories]
    return [template.prompt(order, memory, payoffs) for order in presented for memory in named]


def trial_prompts(
    words: Sequence[str], presented: Sequence[Order], memory_length: int, template: Template, payoffs: Payoffs
) -> list[Prompt]:
    """A few prompts that show faults of words and lengths before all prompts are made.

    The first has an empty memory, then comes a full memory of each word, then the prompt with the most letters.
    """
    numbers = range(len(words))
    # Points depend only on whether two words are equal, so the longest prompt has the longest words.
    second, first = sorted(numbers, key=lambda number: len(words[number]))[-2:]
    pairs = [*((number, number) for number in numbers), (second, first), (first, second)]
    full = prompts(words, presented[:1], [[pair] * memory_length for pair in pairs], template, payoffs)
    (empty,) = prompts(words, presented[-1:], [[]], template, payoffs)
    return [empty, *full[: len(words)], longest(full)]
