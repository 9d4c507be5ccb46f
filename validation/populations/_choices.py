"""Choices and the memories that they were made with: out of a log, or counted in a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from meanfield import InputError, MemorySpace
from meanfield.toolbox import check_columns, column_numbers, one_or_several, shown

COLUMNS = ("model", "options", "memory_length", "state", "choice", "count")
MOST_CHOICES = 10**9  # in a row of the table, so that sums are exact
NOTHING = -1  # in a memory, where the agent had no interaction yet


class Choices(NamedTuple):
    """Choices of agents who are not committed, in order if they come from a log; arrays over `choice`."""

    memory: np.ndarray  # (choice, length, 2), own and partner's words, oldest first; NOTHING before the first ones
    chosen: np.ndarray
    times: np.ndarray  # how often it was made
    agent: np.ndarray  # 0 where it is not known
    words: tuple[str, ...]

    @classmethod
    def of_table(cls, counts: pd.DataFrame, words: Sequence[str] | None = None) -> Choices:
        """Choices counted in a table of one policy; InputError if it is damaged."""
        check_columns("counts", counts, COLUMNS)
        if counts.empty:
            raise InputError("counts is empty: expected a row a state and choice")
        for column in ("model", "options", "memory_length"):
            values = counts[column].unique()
            if len(values) > 1:
                several = f"counts holds {len(values)} values of {column}"
                raise InputError(f"{several}: select one, as in {column} = {values[0]}")
        options = str(counts["options"].iloc[0]).split("_")
        wanted = one_or_several(options if words is None else words)
        if sorted(map(shown, wanted)) != sorted(map(shown, options)) or len(set(options)) < max(2, len(options)):
            raise InputError(f"words = {wanted}: expected at least two that differ, in any order: {', '.join(options)}")
        times = numbers_in(counts, "count", 0, MOST_CHOICES)
        index = {word: k for k, word in enumerate(wanted)}
        if unknown := [choice for choice in counts["choice"].unique() if choice not in index]:
            raise InputError(f"choice = {unknown[0]!r}: expected one of {', '.join(wanted)}")
        length = int(counts["memory_length"].iloc[0])
        row, texts = pd.factorize(counts["state"], use_na_sentinel=False)
        memory = memory_array([_memory_of(text, index, length) for text in texts], length)[row]
        chosen = counts["choice"].map(index).to_numpy()
        return cls(memory, chosen, times, np.zeros(len(chosen), dtype=int), tuple(wanted))

    @property
    def memory_length(self) -> int:
        return self.memory.shape[1]

    def states(self) -> np.ndarray:
        """Numbers of the memory states in the MemorySpace of these words."""
        n_words, length = len(self.words), self.memory_length
        missing = self.memory[:, :, 0] == NOTHING
        pairs = np.where(missing, 0, n_words * self.memory[:, :, 0].astype(np.int64) + self.memory[:, :, 1])
        space = MemorySpace(n_words, length)
        offset = np.array([space.offset(held) for held in range(length + 1)])
        return offset[length - missing.sum(1)] + pairs @ n_words ** (2 * np.arange(length)[::-1])

    def counts(self) -> np.ndarray:
        """Number of choices of each word in each state, (state, word)."""
        size = MemorySpace(len(self.words), self.memory_length).n_states, len(self.words)
        return np.bincount(self.states() * size[1] + self.chosen, self.times, minlength=size[0] * size[1]).reshape(size)

    def of(self, chosen: np.ndarray) -> Choices:
        """The choices where a mask (choice,) is true."""
        return Choices(*(values[chosen] for values in self[:4]), self.words)

    def recent(self, memory_length: int) -> Choices:
        """The choices with the last interactions of the memories only."""
        return self._replace(memory=self.memory[:, self.memory_length - memory_length :])


def numbers_in(table: pd.DataFrame, name: str, least: int, most: int, whole: bool = True) -> np.ndarray:
    """The numbers in a column; InputError unless all are in the range, and whole if they have to be."""
    values = column_numbers(table[name])
    good = (values >= least) & (values <= most) & ((values == values.round()) | (not whole))
    if not good.all():
        given, kind = table[name].tolist()[int(good.argmin())], "whole number" if whole else "number"
        raise InputError(f"{name} = {given!r}: expected a {kind} from {least} to {most}")
    return values


def memory_array(memories: Iterable[Sequence[tuple[int, int]]], memory_length: int) -> np.ndarray:
    """Memories (memory, memory_length, 2), with NOTHING before the first interactions."""
    missing = ((NOTHING, NOTHING),)
    return np.array([(*missing * (memory_length - len(memory)), *memory) for memory in memories])


def _memory_of(text: object, index: dict[str, int], memory_length: int) -> list[tuple[int, int]]:
    """Pairs of the numbers of own and partner's words, oldest first; InputError if the text is not a memory."""
    if not isinstance(text, str):
        raise InputError(f"state = {text!r}: expected text such as 'A,B|B,B', '' for the empty memory")
    memory = [tuple(interaction.split(",")) for interaction in text.split("|")] if text else []
    for interaction in memory:
        if len(interaction) != 2 or not set(interaction) <= set(index):
            raise InputError(f"state = {text!r}: expected own,partner|own,partner|… of the words {', '.join(index)}")
    if len(memory) > memory_length:
        raise InputError(f"state = {text!r}: expected at most memory_length = {memory_length} interactions")
    return [(index[own], index[partner]) for own, partner in memory]
