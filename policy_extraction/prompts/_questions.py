"""What a model is asked: every memory in every presentation order of the words."""

from __future__ import annotations

from collections.abc import Sequence

from meanfield import MemorySpace
from policy_extraction.prompts._orders import Order
from policy_extraction.prompts._template import Payoffs, Prompt, Template

Memory = Sequence[tuple[int, int]]


def all_memories(n_words: int, memory_length: int) -> list[Memory]:
    """The memories of all states, in the order of `MemorySpace`."""
    space = MemorySpace(n_words, memory_length)
    return [space.memory(state) for state in range(space.n_states)]


def prompts(
    words: Sequence[str], presented: Sequence[Order], memories: Sequence[Memory], template: Template, payoffs: Payoffs
) -> list[Prompt]:
    """All memories in the first presentation order, then all in the next one."""
    named = [[(words[own], words[partner]) for own, partner in memory] for memory in memories]
    return [template.prompt(order, memory, payoffs) for order in presented for memory in named]


def trial_prompts(
    words: Sequence[str], presented: Sequence[Order], memory_length: int, template: Template, payoffs: Payoffs
) -> list[Prompt]:
    """A few of all prompts, in which what is wrong with words or lengths shows before all are written out.

    One begins, one has a full memory of each word, and one is the longest, counted in letters.
    """
    numbers = range(len(words))
    # Points depend on whether two words are equal alone, so that the longest prompt has the longest words.
    longer, longest = sorted(numbers, key=lambda number: len(words[number]))[-2:]
    pairs = [*((number, number) for number in numbers), (longer, longest), (longest, longer)]
    full = prompts(words, presented[:1], [[pair] * memory_length for pair in pairs], template, payoffs)
    (empty,) = prompts(words, presented[-1:], [[]], template, payoffs)
    return [empty, *full[: len(words)], max(full, key=lambda prompt: len(prompt.system) + len(prompt.user))]
