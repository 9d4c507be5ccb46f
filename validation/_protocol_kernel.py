"""Rounds of a population protocol, agent by agent or in batches, and the tables of outcomes that both read.

Both are exact: the two agents of an interaction are a uniformly random ordered pair of distinct ones. In batches
(Berenbrink et al. 2020, arXiv 2005.03584):

- The interactions before the first that meets an agent again are drawn at once (`validation._batches`).
- That interaction is uniform over the ordered pairs with at least one agent of the batch, and is played alone.
- Only the counts matter for what comes next (agents in one state are exchangeable), so every batch starts afresh. For
  the same reason a batch may be cut at the end of a round: its first interactions are collision-free, and of the next
  nothing is known.
- All agents can be in one group within a batch only if those outside the batch are. Then the interactions of the batch,
  which are exchangeable, are put in a random order and looked at one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from validation._batches import draw_bits, draw_entry, draw_length, draw_uniform, play_batch
from validation._random import ONE, next_bits, next_pair, pair_limits
from validation._thresholds import word_thresholds


class Outcomes(NamedTuple):
    """What interactions may come to, a row an outcome: for every ordered pair of states one row or more.

    The rows of the pair (i, j) are those from first_row[i·K + j] up to, not with, first_row[i·K + j + 1].
    """

    first_row: np.ndarray  # (K² + 1,)
    before: np.ndarray  # (rows, 2)
    after: np.ndarray  # (rows, 2)
    thresholds: np.ndarray  # (rows,), cumulated within a pair; its last row needs none
    chance: np.ndarray  # (rows,), probability of the row where no earlier one of its pair came about
    marked: np.ndarray  # (rows,), 1 where the interaction is counted
    outside: np.ndarray  # (groups, K), 1 where a state is not in the group
    leaving: np.ndarray  # (rows, groups), what the row adds to the number of agents outside the group
    watched: np.ndarray  # (observables, K): recorded is watched @ counts


class Runs(NamedTuple):
    """Where the runs stand; the run is the first dim of every array."""

    streams: np.ndarray  # (run, 4)
    counts: np.ndarray  # (run, K); the agent-by-agent method writes it at the ends of rounds only
    played: np.ndarray  # (run,), rounds
    absorbed: np.ndarray  # (run, 2), interactions played when all agents were first in one group, and which; -1 before
    final: np.ndarray  # (run, K), counts at that moment
    recorded: np.ndarray  # (run, rounds + 1, observables); no rounds where none are recorded
    marked: np.ndarray  # (run, rounds + 1), marked interactions of each round


def outcomes_of(
    before: np.ndarray,
    after: np.ndarray,
    probability: np.ndarray,
    marked: np.ndarray,
    groups: np.ndarray,
    watched: np.ndarray,
) -> Outcomes:
    """The tables of rows (rows, 2), (rows, 2), (rows,), (rows,) in any order; `groups` (groups, K) is 1 for members.

    The probabilities of each pair sum to 1 within rounding.
    """
    n_states = watched.shape[1]
    pair = before[:, 0] * n_states + before[:, 1]
    order = np.argsort(pair, kind="stable")
    before, after, probability, marked = (values[order] for values in (before, after, probability, marked))
    number = np.bincount(pair, minlength=n_states**2)
    first_row = np.concatenate([[0], np.cumsum(number)])
    thresholds = np.zeros(len(pair), np.uint64)
    chance = np.ones(len(pair))
    for size in np.unique(number):  # word_thresholds wants rows of one length
        rows = first_row[:-1][number == size][:, None] + np.arange(size)
        q = probability[rows] / probability[rows].sum(axis=1, keepdims=True)
        thresholds[rows[:, :-1]] = word_thresholds(q)
        rest = np.cumsum(q[:, ::-1], axis=1)[:, ::-1]
        chance[rows] = np.divide(q, rest, out=np.ones_like(q), where=rest > 0)
    outside = (1 - groups).astype(np.int64)
    leaving = (outside[:, after].sum(axis=2) - outside[:, before].sum(axis=2)).T
    return Outcomes(
        first_row, before, after, thresholds, chance, marked, outside, np.ascontiguousarray(leaving), watched
    )


@njit(cache=True)
def chosen_row(outcomes, pair, bits):
    """The row of `outcomes` that an interaction of the pair comes to, given 64 random bits."""
    draw = bits >> ONE
    row = outcomes.first_row[pair]
    last = outcomes.first_row[pair + 1] - 1
    while row < last and draw >= outcomes.thresholds[row]:
        row += 1
    return row


@njit(cache=True)
def full_group(outside, counts):
    """The first group that all agents are in, -1 where there is none."""
    for group in range(outside.shape[0]):
        others = 0
        for state in range(counts.size):
            others += outside[group, state] * counts[state]
        if others == 0:
            return group
    return -1


@njit(cache=True)
def write_absorbed(absorbed, final, interaction, group, counts):
    absorbed[0] = interaction
    absorbed[1] = group
    final[:] = counts


@njit(cache=True)
def count_others(outside, counts, others):
    """Writes the number of agents outside each group into `others` (groups,)."""
    for group in range(others.size):
        others[group] = 0
        for state in range(counts.size):
            others[group] += outside[group, state] * counts[state]


@njit(cache=True)
def emptied(others, leaving, row):
    """Counts the outcome `row` in `others`; the first group that no agent is outside of any more, or -1."""
    found = -1
    for group in range(others.size):
        others[group] += leaving[row, group]
        if others[group] == 0 and found < 0:
            found = group
    return found


@njit(cache=True)
def play_agents(agents, counts, stream, absorbed, final, others, outcomes, before, goes_on):
    """A round of N interactions after `before` earlier ones, or up to absorption; returns how many were marked.

    Updates the states `agents` (N,), the `counts` (K,) and `others` (groups,) that belong to them, and the stream. The
    first absorption is written to `absorbed` and `final`; a run that `goes_on` plays its round to the end.
    """
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    n_states = counts.size
    limits = pair_limits(agents.size)
    watching = absorbed[0] < 0 and others.size > 0
    marked = 0
    for step in range(agents.size):
        i, j, s0, s1, s2, s3 = next_pair(limits, s0, s1, s2, s3)
        pair = np.int64(agents[i]) * n_states + np.int64(agents[j])
        row = outcomes.first_row[pair]
        if outcomes.first_row[pair + 1] - row > 1:
            bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
            row = chosen_row(outcomes, pair, bits)
        marked += outcomes.marked[row]
        for side in range(2):
            counts[outcomes.before[row, side]] -= 1
            counts[outcomes.after[row, side]] += 1
        agents[i] = outcomes.after[row, 0]
        agents[j] = outcomes.after[row, 1]
        if watching:
            group = emptied(others, outcomes.leaving, row)
            if group >= 0:
                write_absorbed(absorbed, final, before + step + 1, group, counts)
                watching = False
                if not goes_on:
                    break
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3
    return marked


@njit(cache=True)
def collide(stream, untouched, touched, n_touched, n_agents, outcomes):
    """One interaction with at least one touched agent, after which all agents are in `touched`; returns its row."""
    n_untouched = n_agents - n_touched
    both = np.float64(n_touched) * (n_touched - 1.0)
    one = np.float64(n_touched) * n_untouched
    u = draw_uniform(stream) * (both + 2.0 * one)
    if u <= both:
        i = draw_entry(stream, touched, n_touched)
        touched[i] -= 1
        j = draw_entry(stream, touched, n_touched - 1)
        touched[j] -= 1
    else:
        i = draw_entry(stream, touched, n_touched)
        touched[i] -= 1
        j = draw_entry(stream, untouched, n_untouched)
        untouched[j] -= 1
        if u <= both + one:
            i, j = j, i
    row = chosen_row(outcomes, i * touched.size + j, draw_bits(stream))
    touched[outcomes.after[row, 0]] += 1
    touched[outcomes.after[row, 1]] += 1
    return row


@njit(cache=True)
def replay(stream, counts, rows, numbers, length, outcomes, absorbed, final, before):
    """Plays a batch again from its first `counts`, in a random order, up to absorption if there is one."""
    others = np.empty(outcomes.outside.shape[0], np.int64)
    count_others(outcomes.outside, counts, others)
    for step in range(length):
        k = draw_entry(stream, numbers, length - step)
        numbers[k] -= 1
        for side in range(2):
            counts[outcomes.before[rows[k], side]] -= 1
            counts[outcomes.after[rows[k], side]] += 1
        group = emptied(others, outcomes.leaving, rows[k])
        if group >= 0:
            write_absorbed(absorbed, final, before + step + 1, group, counts)
            break


@njit(cache=True)
def play_batches(counts, stream, absorbed, final, outcomes, survival, before, goes_on):
    """A round of N interactions after `before` earlier ones, or up to absorption; returns how many were marked.

    Updates `counts` (K,) and the stream; a run that is absorbed and does not go on leaves its counts in `final` only.
    """
    n_agents = counts.sum()
    initiators, responders, touched, first = np.empty((4, counts.size), np.int64)
    rows, numbers = np.empty((2, outcomes.marked.size), np.int64)
    left, marked = n_agents, np.int64(0)
    while left > 0:
        free = draw_length(stream, survival)
        length = min(free, left)
        first[:] = counts
        n_rows = play_batch(stream, counts, n_agents, length, outcomes, initiators, responders, touched, rows, numbers)
        for k in range(n_rows):
            marked += outcomes.marked[rows[k]] * numbers[k]
        start = before + n_agents - left
        if absorbed[0] < 0 and full_group(outcomes.outside, counts) >= 0:
            replay(stream, first, rows[:n_rows], numbers[:n_rows], length, outcomes, absorbed, final, start)
        left -= length
        if left > 0 and (absorbed[0] < 0 or goes_on):
            marked += outcomes.marked[collide(stream, counts, touched, 2 * length, n_agents, outcomes)]
            left -= 1
        counts += touched
        if absorbed[0] < 0:
            group = full_group(outcomes.outside, counts)
            if group >= 0:
                write_absorbed(absorbed, final, before + n_agents - left, group, counts)
        if absorbed[0] >= 0 and not goes_on:
            break
    return marked


@njit(cache=True)
def advance_run(counts, stream, absorbed, final, recorded, marked, played, agents, outcomes, survival, n_rounds, least):
    """Plays up to `n_rounds` more rounds of one run, at least up to round `least`; returns the rounds played in all."""
    n_agents = counts.sum()
    others = np.empty(outcomes.outside.shape[0], np.int64)
    count_others(outcomes.outside, counts, others)
    if played == 0:
        group = full_group(outcomes.outside, counts)
        if group >= 0:
            write_absorbed(absorbed, final, 0, group, counts)
        if recorded.shape[0] > 0:
            watch(outcomes.watched, counts, recorded[0])
    for _ in range(n_rounds):
        if absorbed[0] >= 0 and played >= least:
            break
        before, goes_on = played * n_agents, played < least
        if survival.size > 0:
            n_marked = play_batches(counts, stream, absorbed, final, outcomes, survival, before, goes_on)
        else:
            n_marked = play_agents(agents, counts, stream, absorbed, final, others, outcomes, before, goes_on)
        played += 1
        if played < recorded.shape[0]:
            watch(outcomes.watched, counts, recorded[played])
            marked[played] = n_marked
    return played


@njit(cache=True)
def watch(watched, counts, observed):
    """Writes watched @ counts into `observed`."""
    for k in range(observed.size):
        observed[k] = 0
        for state in range(counts.size):
            observed[k] += watched[k, state] * counts[state]


@njit(cache=True, parallel=True)
def advance(
    active,
    streams,
    counts,
    played,
    absorbed,
    final,
    recorded,
    marked,
    agents,
    first_row,
    before,
    after,
    thresholds,
    chance,
    counted,
    outside,
    leaving,
    watched,
    survival,
    n_rounds,
    least,
):
    """`advance_run` for the runs with the numbers `active`: the fields of `Runs`, `agents`, those of `Outcomes`, ….

    One by one, since numba 0.68 compiles named tuples of arrays to other arrays within parallel loops.
    """
    for k in prange(active.size):
        run = active[k]
        outcomes = Outcomes(first_row, before, after, thresholds, chance, counted, outside, leaving, watched)
        played[run] = advance_run(
            counts[run],
            streams[run],
            absorbed[run],
            final[run],
            recorded[run],
            marked[run],
            played[run],
            agents[run],
            outcomes,
            survival,
            n_rounds,
            least,
        )
