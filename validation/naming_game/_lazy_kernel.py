"""The naming game agent by agent, for policies known in some states only so far.

It plays as `_kernel` does, with the same draws in the same order, up to an interaction in which an agent speaks from a
state that is not known. There a run stops, with its stream of random numbers as before that interaction, and continues
once the state is known.

Known states have a row each in `thresholds` and `q`; the first W rows belong to agents committed to each word. An
agent's row is kept beside its state, -1 where it is not known. `table` (capacity, 2) is a hash table from states to
rows, by linear probing from a hash of the state; its capacity is a power of two, and empty places hold (-1, -1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from meanfield.toolbox import summed
from theory.pairs import next_pair, pair_limits
from theory.streams import GOLDEN, HALF_BITS, ONE, next_bits
from validation._engine.thresholds import word_thresholds
from validation.naming_game._convention import ROUNDS_AVERAGED
from validation.naming_game._kernel import agreed_word, draw_word
from validation.naming_game._shares_kernel import mean_word_share


class Asked(NamedTuple):
    """Calls of the function of a `LazyPolicy`, and memories that it was asked about in all."""

    calls: int
    memories: int


class Answers:
    """Answers of a function, in the arrays that the compiled functions read."""

    def __init__(self, n_words: int) -> None:
        self.q = np.eye(n_words)
        self.thresholds = word_thresholds(self.q)
        self.table = np.full((2, 2), -1, dtype=np.int64)
        self.asked = Asked(0, 0)
        self._n_rows = n_words

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
        if n_rows > len(self.q):
            more = max(n_rows, 2 * len(self.q)) - len(self.q)
            self.q = np.concatenate([self.q, np.empty((more, self.q.shape[1]))])
        if len(self.thresholds) < len(self.q):
            more = len(self.q) - len(self.thresholds)
            self.thresholds = np.concatenate(
                [self.thresholds, np.empty((more, self.thresholds.shape[1]), dtype=np.uint64)]
            )
        if 2 * n_rows > len(self.table):  # at least half of the places stay empty, so that probing is short
            table = np.full((2 ** (4 * n_rows - 1).bit_length(), 2), -1, dtype=np.int64)
            states, rows = np.ascontiguousarray(self.table[self.table[:, 0] >= 0].T)
            insert(table, states, rows)
            self.table = table


@njit(cache=True)
def place_of(table, state):
    """Where `state` is in the table, or the empty place where it would be."""
    last = np.uint64(table.shape[0] - 1)
    place = state * GOLDEN
    place = (place ^ (place >> HALF_BITS)) & last  # a product's low bits depend on the low bits of its factors only
    while table[place, 0] >= 0 and np.uint64(table[place, 0]) != state:
        place = (place + ONE) & last
    return place


@njit(cache=True)
def insert(table, states, rows):
    """Gives the `states` (n,) the `rows` (n,), both int64."""
    for k in range(states.size):
        place = place_of(table, np.uint64(states[k]))
        table[place, 0] = states[k]
        table[place, 1] = rows[k]


@njit(cache=True)
def rows_of(table, states):
    """The rows of the `states`, int64 of shape (n,); -1 where a state is not known."""
    rows = np.empty(states.size, dtype=np.int32)
    for k in range(states.size):
        rows[k] = table[place_of(table, np.uint64(states[k])), 1]
    return rows


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
def play_interactions(states, rows, stream, agreed, uttered, done, thresholds, table, sizes):
    """Plays the rest of a round after `done` interactions; returns how many are played, N unless it stopped."""
    pair = np.zeros(2, dtype=np.int64)
    while done < states.size and speak(states, rows, stream, thresholds, table, sizes, pair):
        agreed[pair[0]] += np.int64(pair[0] == pair[1])
        uttered[pair[0]] += 1
        uttered[pair[1]] += 1
        done += 1
    return done


@njit(cache=True)
def end_round(rows, agreed, uttered, consensus, shares, said, success_rate, progress, test, q):
    """Records the round and tests for consensus; False, with nothing done, if that needs more rows."""
    played = progress[0] + 1
    agreements = summed(agreed)
    converged = consensus[0] == 0 and played >= test[0] and agreements.sum() >= test[1]
    tied = converged and (agreements == agreements.max()).sum() > 1
    recorded = played < shares.shape[0]
    if (recorded or tied) and rows.min() < 0:
        return False
    if recorded:
        mean_word_share(rows, q, shares[played])
    if played < said.shape[0]:
        for word in range(uttered.size):
            said[played, word] = uttered[word] / (2 * rows.size)
    if played < success_rate.shape[0]:
        success_rate[played] = agreed[progress[0] % ROUNDS_AVERAGED].sum() / rows.size
    if converged:
        consensus[0] = played
        # The word likelier to be said next only decides between equals, and is not asked for without them.
        consensus[1] = agreed_word(agreements, rows, q) if tied else agreements.argmax()
    progress[0] = played
    progress[1] = 0
    return True


@njit(cache=True, nogil=True)
def advance(
    active,
    stopped,
    states,
    rows,
    streams,
    agreed,
    uttered,
    consensus,
    shares,
    said,
    success_rate,
    progress,
    n_rounds,
    limits,
    test,
    thresholds,
    q,
    table,
    sizes,
):
    """Plays up to `n_rounds` more rounds of the runs with the numbers `active`.

    As `_kernel.advance`, with `stopped` (run,), whether the run stopped for want of a row, `uttered` (run, W), how
    often each word was said in the round, `progress` (run, 2), the rounds played and the interactions of the unfinished
    one, and `limits` (2,), the least and the most rounds. `sizes` (5,) describes the memory space: W, W², the first
    state with a full memory, the first one with one interaction less, and the number of those.
    """
    n_agents = rows.shape[1]
    for k in range(active.size):
        run = active[k]
        done, spoken = progress[run], uttered[run]
        stopped[run] = False
        last = min(done[0] + n_rounds, limits[1])
        while not stopped[run] and done[0] < last and (consensus[run, 0] == 0 or done[0] < limits[0]):
            latest = agreed[run, done[0] % ROUNDS_AVERAGED]
            if done[1] == 0:
                latest[:] = 0
                spoken[:] = 0
            done[1] = play_interactions(
                states[run], rows[run], streams[run], latest, spoken, done[1], thresholds, table, sizes
            )
            stopped[run] = done[1] < n_agents or not end_round(
                rows[run],
                agreed[run],
                spoken,
                consensus[run],
                shares[run],
                said[run],
                success_rate[run],
                done,
                test,
                q,
            )
