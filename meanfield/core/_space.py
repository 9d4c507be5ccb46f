"""The memory space: every memory of up to H interactions, numbered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from meanfield.toolbox._arguments import shown, whole_number
from meanfield.toolbox._errors import InputError

MOST_DIGITS = 1000  # of the number of states, which is computed and told exactly
Memory = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class MemorySpace:
    """All memories of up to `memory_length` interactions with `n_words` words, numbered.

    A memory lists interactions (own word, partner's word), oldest first. States are numbered by memory length, then by
    the base-W² digits ``W·own + partner``, oldest most significant; the empty memory is state 0. In this order the
    states form a heap: an agent in state i whose memory is not full goes to ``1 + W²·i + W·own + partner``.

    Parameters
    ----------
    n_words
        W ≥ 2.
    memory_length
        H ≥ 1, in interactions.

    Raises
    ------
    InputError
        If a number is not whole or too small, or the space has 10^1000 states or more.

    Examples
    --------
    >>> space = meanfield.MemorySpace(n_words=2, memory_length=5)
    >>> space.n_states
    1365
    >>> space.memory(12)  # heard word 1 and then said it, too
    ((0, 1), (1, 1))
    >>> space.state([(0, 1), (1, 1)])
    12
    """

    n_words: int
    memory_length: int

    def __post_init__(self) -> None:
        for name, least in (("n_words", 2), ("memory_length", 1)):
            # Numbers of NumPy would overflow in powers of W.
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least))
        if self.memory_length > MOST_DIGITS / (2 * math.log10(self.n_words)):
            raise InputError(
                f"n_words = {self.n_words}, memory_length = {self.memory_length}: expected fewer than 10^{MOST_DIGITS} "
                "states"
            )

    @classmethod
    def from_sizes(cls, n_states: int, n_words: int) -> MemorySpace:
        """The space with `n_states` states, S = Σ_{h≤H} W^{2h}; InputError where no H fits."""
        n_words, n_states = whole_number("n_words", n_words, 2), whole_number("n_states", n_states)
        return cls._of_sizes(n_states, n_words)

    @classmethod
    @cache
    def _of_sizes(cls, n_states: int, n_words: int) -> MemorySpace:
        length = 1
        while (space := cls(n_words, length)).n_states < n_states:
            length += 1
        if space.n_states != n_states:
            sizes = ", ".join(f"{cls(n_words, h).n_states} (H = {h})" for h in (1, 2, 3, 4, 5))
            raise InputError(f"{n_states} states with {n_words} words: expected Σ_h W^(2h) states, that is {sizes}, …")
        return space

    @cached_property
    def n_digits(self) -> int:
        """W², the number of outcomes of one interaction."""
        return self.n_words**2

    def offset(self, length: int) -> int:
        """The first state that remembers `length` interactions."""
        length = whole_number("length", length, 0, self.memory_length + 1)
        return (self.n_digits**length - 1) // (self.n_digits - 1)

    @cached_property
    def n_states(self) -> int:
        """S, the number of states."""
        return self.offset(self.memory_length + 1)

    @cached_property
    def n_full(self) -> int:
        """W^{2H}, the number of states with a full memory; they are the last ones."""
        return self.n_digits**self.memory_length

    def state(self, memory: Memory) -> int:
        """The number of a memory, a sequence of pairs (own word, partner's word), oldest first."""
        try:
            pairs = [(own, partner) for own, partner in memory]
        except (TypeError, ValueError):
            raise InputError(f"memory = {shown(memory)}: expected pairs of numbers of words") from None
        if len(pairs) > self.memory_length:
            raise InputError(f"memory of {len(pairs)} interactions: expected at most H = {self.memory_length}")
        state = 0
        for pair in pairs:
            own, partner = (whole_number("word in memory", word, 0, self.n_words - 1) for word in pair)
            state = 1 + self.n_digits * state + self.n_words * own + partner
        return state

    def memory(self, state: int) -> tuple[tuple[int, int], ...]:
        """The memory with number `state`, as pairs (own word, partner's word), oldest first."""
        state = whole_number("state", state, 0, self.n_states - 1)
        pairs = []
        while state > 0:
            state, digit = divmod(state - 1, self.n_digits)
            pairs.append(divmod(digit, self.n_words))
        return tuple(reversed(pairs))

    def consensus_state(self, word: int) -> int:
        """The state [π]^{2H} of an agent who has only ever said and heard `word`."""
        return self.state([(word, word)] * self.memory_length)

    def successors(self) -> np.ndarray:
        """Successor states without their last digit, shape (S,).

        An agent in state i that says a and hears b goes to Γ(i, a, b) = ``successors[i] + W·a + b``.
        """
        states = np.arange(self.n_states)
        full = self.offset(self.memory_length)
        kept = self.n_full // self.n_digits  # memories of H - 1 interactions
        without_oldest = self.offset(self.memory_length - 1) + (states - full) % kept
        return 1 + self.n_digits * np.where(states < full, states, without_oldest)
