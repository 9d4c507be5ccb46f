"""The prompts of a game: every memory in every presentation order of the words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from meanfield import MemorySpace
from policy_extraction._toolbox.texts import check_kept
from policy_extraction.prompts._orders import Order
from policy_extraction.prompts._template import Payoffs, Prompt, Template, longest

Memory: TypeAlias = tuple[tuple[int, int], ...]
Asked: TypeAlias = tuple[Memory, int]
"""A memory and the number of a presentation order."""


@dataclass(frozen=True)
class Game:
    """One set of words and all that their prompts depend on."""

    words: tuple[str, ...]
    presented: Sequence[Order]
    memory_length: int
    template: Template
    payoffs: Payoffs

    def prompt(self, asked: Asked) -> Prompt:
        memory, place = asked
        named = [(self.words[own], self.words[partner]) for own, partner in memory]
        return self.template.prompt(self.presented[place], named, self.payoffs)

    def every(self) -> list[Asked]:
        """Every memory in the first presentation order, then in the next one."""
        space = MemorySpace(len(self.words), self.memory_length)
        memories = [space.memory(state) for state in range(space.n_states)]
        return [(memory, place) for place in range(len(self.presented)) for memory in memories]

    def prompts(self) -> list[Prompt]:
        return [self.prompt(asked) for asked in self.every()]

    def trial(self) -> list[Prompt]:
        """A few prompts that show faults of words and lengths before all prompts are made.

        The first has an empty memory, then comes a full memory of each word, then the prompt with the most letters.
        """
        numbers = range(len(self.words))
        # Points depend only on whether two words are equal, so the longest prompt has the longest words.
        second, first = sorted(numbers, key=lambda number: len(self.words[number]))[-2:]
        pairs = [*((number, number) for number in numbers), (second, first), (first, second)]
        full = [self.prompt(((pair,) * self.memory_length, 0)) for pair in pairs]
        return [self.prompt(((), -1)), *full[: len(self.words)], longest(full)]

    def check(self, backend: Any) -> None:
        """InputError unless the back end can measure these words and lengths, and files can hold what it tells."""
        backend.check(self.trial(), self.words)
        check_kept({"model": backend.name, "identity": backend.identity, **backend.provenance})
