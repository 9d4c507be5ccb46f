"""The words of one or several games, checked, and the prompts of a game."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from meanfield import InputError, MemorySpace
from meanfield.toolbox import shown, whole_number
from policy_extraction._toolbox.texts import check_kept, check_name
from policy_extraction.prompts._orders import MOST_WORDS, Order, default_number
from policy_extraction.prompts._template import Payoffs, Prompt, Template, check_prompt, longest

Words = tuple[str, ...]
Memory: TypeAlias = tuple[tuple[int, int], ...]
Asked: TypeAlias = tuple[Memory, int]
"""A memory and the number of a presentation order."""
LONGEST_MEMORY = 31  # interactions; with more, even two words have more than 2^63 memory states
MOST_STATES = 1_000_000
MOST_TEXT = 2_000_000_000  # characters; all prompts of a game are in working memory together


def games_of(words: Sequence[str] | Sequence[Sequence[str]]) -> tuple[list[Words], bool]:
    """The words of each game, and whether several games were given; InputError for anything else."""
    expected = "expected words as in ('his', 'her'), or a sequence of such sequences"
    known = isinstance(words, Sequence) and not isinstance(words, str)
    if not known or not words or not all(isinstance(each, Sequence) for each in words):
        raise InputError(f"words = {shown(words)}: {expected}")
    stacked = not any(isinstance(word, str) for word in words)
    games: list[Words] = [tuple(game) for game in (words if stacked else [words])]  # pyright: ignore
    if not all(isinstance(word, str) for game in games for word in game):
        raise InputError(f"words = {shown(words)}: {expected}")
    return games, stacked


def checked_game(words: Sequence[str], memory_length: int, template: Template, payoffs: Payoffs) -> Words:
    """The words of a single game; InputError if an argument is wrong."""
    games, stacked = games_of(words)
    if stacked:
        raise InputError(f"words = {shown(words)}: expected the words of one game, as in ('his', 'her')")
    check_games(games, memory_length)
    check_prompt(template, payoffs)
    return games[0]


def check_games(games: list[Words], memory_length: int) -> None:
    """InputError unless each game has the same number of different words, and memory states can be numbered."""
    whole_number("memory_length", memory_length, 1, LONGEST_MEMORY)
    for game in games:
        if not 2 <= len(game) <= MOST_WORDS:
            raise InputError(f"words: there are {len(game)}, expected at least two words, at most {MOST_WORDS}")
        for word in game:
            check_name("words", word)
            if word != word.strip() or any(sign in word for sign in "'\"\n,"):
                raise InputError(
                    f"words: {shown(word)} is no word; expected text without quotation marks, commas or outer spaces"
                )
        if len(set(game)) < len(game):
            raise InputError(f"words = {shown(game)}: expected words that differ")
        if len(game) != len(games[0]):
            raise InputError(f"words: {shown(games[0])} and {shown(game)}: expected sets of equal size")
    if len(set(games)) < len(games):
        raise InputError("words: the same words in the same order are given twice")


def check_tabulable(games: list[Words], memory_length: int) -> None:
    """InputError if the memory states are too many for a table."""
    n_states = MemorySpace(len(games[0]), memory_length).n_states
    if n_states > MOST_STATES:
        raise InputError(
            f"memory_length = {memory_length} with {len(games[0])} words: {n_states:,} memory states can't be "
            f"tabulated, expected at most {MOST_STATES:,}; see lazy_policy"
        )


def check_text(game: Words, memory_length: int, trial: Sequence[Prompt]) -> None:
    """InputError if the prompts of a game are too much text; `trial` holds the longest one."""
    number = MemorySpace(len(game), memory_length).n_states * default_number(len(game))
    longest = max(len(prompt.system) + len(prompt.user) for prompt in trial)
    if number * longest > MOST_TEXT:
        raise InputError(
            f"memory_length = {memory_length} with {len(game)} words: {number:,} prompts of up to {longest:,} "
            f"characters, expected at most {MOST_TEXT:,} characters in all; see lazy_policy"
        )


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
