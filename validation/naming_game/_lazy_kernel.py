"""The naming game agent by agent, as in `_kernel`, for policies that are known in some states only so far.

An interaction in which an agent would speak from an unknown state is not played; it is once the state is known. Known
states have a row each in `thresholds` and `q`; the first W rows belong to agents committed to each word. An agent's row
is kept beside its state, -1 where it is not known. `table` (capacity, 2) is a hash table from states to rows, by linear
probing; its capacity is a power of two, and empty places hold (-1, -1). `sizes` (5,) describes the memory space: W, W²,
the first state with a full memory, the first one with one interaction less, and the number of those.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield import MemorySpace
from meanfield.toolbox import compiled, inner
from theory.pairs import next_pair, pair_limits
from theory.streams import GOLDEN, HALF_BITS, ONE, next_bits
from validation._engine.thresholds import draw_word, word_thresholds


class Asked(NamedTuple):
    """Calls of the function of a `LazyPolicy`, and memories that it was asked about in all."""

    calls: int
    memories: int


class Answers:
    """Answers of a function, in the arrays that the compiled functions read."""

    successors = np.empty(0, np.int32)  # states follow from each other as `remember` says

    def __init__(self, space: MemorySpace) -> None:
        self.q = np.eye(space.n_words)
        self.thresholds = word_thresholds(self.q)
        self.table = np.full((2, 2), -1, dtype=np.int64)
        h = space.memory_length
        shorter = space.offset(h - 1), space.n_digits ** (h - 1)
        self.sizes = np.array([space.n_words, space.n_digits, space.offset(h), *shorter], dtype=np.uint64)
        self.asked = Asked(0, 0)
        self._n_rows = space.n_words

    def add(self, states: np.ndarray, q: np.ndarray) -> None:
        """Adds the answers `q` (n, W) for new `states` (n,); an interrupt at any moment keeps the known ones."""
        first, last = self._n_rows, self._n_rows + states.size
        self._make_room(last)
        self._n_rows = last  # before they are filled: after an interrupt rows are lost, rather than given twice
        self.q[first:last] = q
        self.thresholds[first:last] = word_thresholds(q)
        insert(self.table, states, np.arange(first, last))
        self.asked = Asked(self.asked.calls + 1, self.asked.memories + states.size)

    def _make_room(self, n_rows: int) -> None:
        for name in ("q", "thresholds"):
            values = getattr(self, name)
            if n_rows > len(values):
                more = max(n_rows, 2 * len(values)) - len(values)
                setattr(self, name, np.concatenate([values, np.empty((more, values.shape[1]), values.dtype)]))
        if 2 * n_rows > len(self.table):  # at least half of the places stay empty, so that probing is short
            table = np.full((2 ** (4 * n_rows - 1).bit_length(), 2), -1, dtype=np.int64)
            insert(table, *np.ascontiguousarray(self.table[self.table[:, 0] >= 0].T))
            self.table = table


@inner
def place_of(table, state):
    """Where `state` is in the table, or the empty place where it would be."""
    last = np.uint64(table.shape[0] - 1)
    place = state * GOLDEN
    place = (place ^ (place >> HALF_BITS)) & last  # a product's low bits depend on the low bits of its factors only
    while table[place, 0] >= 0 and np.uint64(table[place, 0]) != state:
        place = (place + ONE) & last
    return place


@compiled
def insert(table, states, rows):
    """Gives the `states` (n,) the `rows` (n,), both int64."""
    for k in range(states.size):
        place = place_of(table, np.uint64(states[k]))
        table[place, 0] = states[k]
        table[place, 1] = rows[k]


@compiled
def rows_of(table, states):
    """The rows of the `states`, int64 of shape (n,); -1 where a state is not known."""
    rows = np.empty(states.size, dtype=np.int32)
    for k in range(states.size):
        rows[k] = table[place_of(table, np.uint64(states[k])), 1]
    return rows


@inner
def remember(states, rows, agent, own, partner, table, sizes):
    """Moves an agent on that said `own` and heard `partner`; the memory of a committed one makes no difference."""
    n_words, n_digits, full, shorter, n_shorter = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]
    if rows[agent] < n_words:
        return
    state = np.uint64(states[agent])
    if state >= full:
        state = shorter + (state - full) % n_shorter
    state = ONE + n_digits * state + n_words * own + partner
    states[agent] = state
    rows[agent] = table[place_of(table, state), 1]


@inner
def speak(states, rows, stream, thresholds, table, sizes, pair):
    """One interaction, its words written into `pair`; False, with nothing changed, if a speaker's state has no row."""
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    # Agents and words are drawn as in `_kernel.play`: the results have to be the same to the bit.
    i, j, s0, s1, s2, s3 = next_pair(pair_limits(states.size), s0, s1, s2, s3)
    if rows[i] < 0 or rows[j] < 0:
        return False
    bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
    word_i = draw_word(thresholds, np.uint64(rows[i]), bits)
    bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
    word_j = draw_word(thresholds, np.uint64(rows[j]), bits)
    remember(states, rows, i, word_i, word_j, table, sizes)
    remember(states, rows, j, word_j, word_i, table, sizes)
    pair[0], pair[1] = np.int64(word_i), np.int64(word_j)
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3
    return True


@inner
def play_on(done, states, rows, stream, met, thresholds, table, sizes):
    """The rest of a round after `done` interactions, as `_kernel.play`; returns how many are played, N at its end."""
    pair = np.zeros(2, dtype=np.int64)
    while done < states.size and speak(states, rows, stream, thresholds, table, sizes, pair):
        met[np.int64(sizes[0]) * pair[0] + pair[1]] += 1
        done += 1
    return done
