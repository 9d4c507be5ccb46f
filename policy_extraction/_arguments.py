"""The words of one or several games, checked."""

from __future__ import annotations

from collections.abc import Sequence

from meanfield import InputError, MemorySpace

Words = tuple[str, ...]
MOST_STATES = 1_000_000


def games_of(words: Sequence[str] | Sequence[Sequence[str]]) -> tuple[list[Words], bool]:
    """The sets of words, and whether they were given as a sequence of sets; InputError if they are neither."""
    expected = "expected words as in ('his', 'her'), or a sequence of such sequences"
    if isinstance(words, str) or not isinstance(words, Sequence) or not words:
        raise InputError(f"words = {words!r}: {expected}")
    stacked = not any(isinstance(word, str) for word in words)
    games: list[Words] = [tuple(game) for game in (words if stacked else [words])]  # pyright: ignore
    if not all(isinstance(word, str) for game in games for word in game):
        raise InputError(f"words = {words!r}: {expected}")
    return games, stacked


def one_game(words: Sequence[str]) -> Words:
    """The words of one game; InputError if they are none."""
    games, stacked = games_of(words)
    if stacked:
        raise InputError(f"words = {words!r}: expected the words of one game, as in ('his', 'her')")
    return games[0]


def check_games(games: list[Words], memory_length: int) -> None:
    """InputError unless there are words that differ, as many in each game, and a memory."""
    for game in games:
        MemorySpace(len(game), memory_length)
        for word in game:
            if not word.strip() or word != word.strip() or any(sign in word for sign in "'\"\n,"):
                raise InputError(
                    f"words: {word!r} is no word; expected text without quotation marks, commas and outer spaces"
                )
        if len(set(game)) < len(game):
            raise InputError(f"words = {', '.join(game)}: expected words that differ")
        if len(game) != len(games[0]):
            raise InputError(f"words: {', '.join(games[0])} and {', '.join(game)}: expected sets of equal size")
    if len(set(games)) < len(games):
        raise InputError("words: the same words in the same order are given twice")


def check_tabulable(games: list[Words], memory_length: int) -> None:
    """InputError if there are too many memory states for a table."""
    n_states = MemorySpace(len(games[0]), memory_length).n_states
    if n_states > MOST_STATES:
        raise InputError(
            f"memory_length = {memory_length} with {len(games[0])} words: {n_states:,} memory states can't be "
            f"tabulated, at most {MOST_STATES:,} can; see lazy_policy"
        )
