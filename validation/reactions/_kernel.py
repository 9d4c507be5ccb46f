"""Rounds of a population protocol, agent by agent or in batches, and the tables of outcomes that both read.

Both are exact: an interaction takes a uniformly random ordered pair of distinct agents; agent by agent it may be one of
neighbours on a graph. In batches (Berenbrink et al. 2020, arXiv 2005.03584):

- Only the counts matter for the future, since agents in one state are exchangeable. So epochs (`_epochs`) and batches
  (`_engine.batches`) may follow each other, each starting afresh, and the length of an epoch may depend on the counts
  at its start.
- While no epoch can fill an absorbing group, a round is played in epochs, otherwise in batches: the interactions before
  the first that meets an agent again, drawn at once, then that one, played alone.
- A batch may be cut at the end of a round: its first interactions are collision-free, and the next one is unknown.
- All agents can be in one group within a batch only if those outside the batch are. Then the interactions of the batch,
  which are exchangeable, are put in a random order and examined one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.toolbox import compiled, copy_to, inner
from theory.pairs import NO_EDGES, edge_limits, next_edge, next_pair, pair_limits
from theory.streams import ONE, next_bits
from validation._engine.batches import chosen_row, draw_entry, play_batch
from validation._engine.thresholds import word_thresholds
from validation.reactions._epochs import collide, draw_length, play_epoch

DRAWN_AHEAD = 256  # interactions on a graph; more are no faster, as measured


class Outcomes(NamedTuple):
    """Outcomes of interactions, a row each: one or more for every ordered pair of states.

    The rows of the pair (i, j) are those from first_row[i·K + j] up to, not with, first_row[i·K + j + 1]. Then come the
    moves of one agent of `changes`, beside another that stays in state 0.
    """

    first_row: np.ndarray  # (K² + 1,)
    before: np.ndarray  # (rows, 2)
    after: np.ndarray  # (rows, 2)
    thresholds: np.ndarray  # (rows,), cumulated within a pair; its last row needs none
    chance: np.ndarray  # (rows,), probability of the row where no earlier one of its pair came about
    marked: np.ndarray  # (rows,), 1 where the interaction is counted
    outside: np.ndarray  # (groups, K), 1 where a state is not in the group
    leaving: np.ndarray  # (rows, groups), the change of the number of agents outside the group
    watched: np.ndarray  # (observables, K): recorded is watched @ counts
    changes: Changes


class Changes(NamedTuple):
    """Moves of one agent with probabilities by counts; moves from state i are first[i] up to first[i + 1] - 1."""

    threshold: np.ndarray  # (1,), of 2^64 interactions those that are such a move, or nothing; 0 without any
    first: np.ndarray  # (K + 1,)
    moves: np.ndarray  # (R, 2), from state to state
    reach: np.ndarray  # (compositions, R), probabilities in such an interaction, cumulated over the moves from a state
    strides: np.ndarray  # (K,): strides @ counts is the row of a composition


NO_CHANGES = Changes(
    np.zeros(1, np.uint64), np.zeros(0, np.int64), np.zeros((0, 2), np.int64), np.empty((0, 0)), np.zeros(0, np.int64)
)


class Meetings(NamedTuple):
    """Who meets whom in a run on a graph, and the group of each node; without edges everybody meets everybody."""

    ends: np.ndarray  # (E, 2), the pair 2e + 1 has the second of the edge e first
    threshold: np.ndarray  # (2E,), of pairs that are not equally likely, as in `theory.pairs`; else (0,)
    other: np.ndarray  # as threshold
    group: np.ndarray  # (N,), or (0,) if no groups are recorded


EVERYBODY = Meetings(*NO_EDGES[:3], np.empty(0, np.int64))


class Runs(NamedTuple):
    """The state of the runs; the run is the first dim of every array."""

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
    changes: Changes = NO_CHANGES,
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
    still = np.zeros(len(changes.moves), np.int64)
    before = np.vstack([before, np.column_stack([changes.moves[:, 0], still])])
    after = np.vstack([after, np.column_stack([changes.moves[:, 1], still])])
    marked = np.append(marked, still)
    outside = (1 - groups).astype(np.int64)
    leaving = (outside[:, after].sum(axis=2) - outside[:, before].sum(axis=2)).T
    return Outcomes(
        first_row, before, after, thresholds, chance, marked, outside, np.ascontiguousarray(leaving), watched, changes
    )


@inner
def watch(watched, counts, observed):
    """Writes watched @ counts into `observed`."""
    for k in range(watched.shape[0]):
        observed[k] = 0
        for state in range(counts.size):
            observed[k] += watched[k, state] * counts[state]


@inner
def watch_graph(agents, n_states, meetings, observed):
    """Writes how many edges there are, and between agents in different states, and agents by group and state."""
    ends, group = meetings.ends, meetings.group
    for k in range(observed.size):
        observed[k] = 0
    between = 0
    for edge in range(len(ends)):
        between += agents[ends[edge, 0]] != agents[ends[edge, 1]]
    observed[0], observed[1] = len(ends), between
    for node in range(group.size):
        observed[2 + group[node] * n_states + agents[node]] += 1


@inner
def full_group(outside, counts):
    """The first group that holds all agents, -1 if none does."""
    others = np.empty(outside.shape[0], np.int64)
    watch(outside, counts, others)
    for group in range(others.size):
        if others[group] == 0:
            return group
    return -1


@inner
def write_absorbed(absorbed, final, interaction, group, counts):
    absorbed[0] = interaction
    absorbed[1] = group
    copy_to(final, counts)


@inner
def emptied(others, leaving, row):
    """Counts the outcome `row` in `others`; returns the first group that has become full, or -1."""
    found = -1
    for group in range(others.size):
        others[group] += leaving[row, group]
        if others[group] == 0 and found < 0:
            found = group
    return found


@inner
def chosen_change(first, reach, row, state, bits):
    """The move of an agent in this state by 64 random bits, -1 if it stays, at the composition of this row."""
    part = np.float64(bits >> np.uint64(11)) * 2.0**-53
    for change in range(first[state], first[state + 1]):
        if part < reach[row, change]:
            return change
    return -1


@inner
def draw_meetings(meetings, n_agents, threshold, number, drawn, s0, s1, s2, s3):
    """Writes the agents of the next `number` interactions into `drawn` (2, ·), one agent twice if it moves alone.

    They are drawn before anything that depends on states, so that the processor waits for many edges at once.
    """
    ends, pair_threshold, other = meetings.ends, meetings.threshold, meetings.other
    among, everyone, places = edge_limits(2 * len(ends)), edge_limits(n_agents), np.empty(number, np.uint64)
    for k in range(places.size):
        places[k], s0, s1, s2, s3 = next_edge(among, s0, s1, s2, s3)
    if pair_threshold.size > 0:
        for k in range(places.size):
            bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
            place = places[k]  # without a branch, which would be guessed wrong
            places[k] = place ^ ((place ^ np.uint64(other[place])) * np.uint64(bits >= pair_threshold[place]))
    for k in range(places.size):
        edge, side = places[k] >> ONE, places[k] & ONE
        drawn[0, k], drawn[1, k] = ends[edge, side], ends[edge, ONE - side]
    if threshold > 0:
        for k in range(places.size):
            bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
            if bits < threshold:  # anyone: the first of a pair is likelier to have many neighbours
                agent, s0, s1, s2, s3 = next_edge(everyone, s0, s1, s2, s3)
                drawn[0, k] = agent
                drawn[1, k] = agent
    return s0, s1, s2, s3


@inner
def play_agents(agents, counts, stream, absorbed, final, others, outcomes, meetings, before, goes_on):
    """A round of N interactions after `before` earlier ones, or up to absorption; returns how many were marked.

    Updates the states `agents` (N,), their `counts` (K,), `others` (groups,) and the stream. The first absorption is
    written to `absorbed` and `final`; a run that `goes_on` plays its round to the end.
    """
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    n_states = counts.size
    limits, on_graph, drawn = pair_limits(agents.size), len(meetings.ends) > 0, np.empty((2, DRAWN_AHEAD), np.uint32)
    watching = absorbed[0] < 0 and others.size > 0
    marked = 0
    first_row, thresholds, old, new = outcomes.first_row, outcomes.thresholds, outcomes.before, outcomes.after
    counted, leaving = outcomes.marked, outcomes.leaving
    first, reach, strides = outcomes.changes.first, outcomes.changes.reach, outcomes.changes.strides
    threshold, composition, alone = outcomes.changes.threshold[0], np.int64(0), False
    for state in range(strides.size):
        composition += strides[state] * counts[state]
    for step in range(agents.size):
        if on_graph:
            place = step % DRAWN_AHEAD
            if place == 0:
                number = min(DRAWN_AHEAD, agents.size - step)
                s0, s1, s2, s3 = draw_meetings(meetings, agents.size, threshold, number, drawn, s0, s1, s2, s3)
            i, j = np.uint64(drawn[0, place]), np.uint64(drawn[1, place])
            alone = i == j
        else:
            i, j, s0, s1, s2, s3 = next_pair(limits, s0, s1, s2, s3)
            if strides.size > 0:
                bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
                alone = bits < threshold
        pair = np.int64(agents[i]) * n_states + np.int64(agents[j])
        row = first_row[pair]
        if alone:
            bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
            change = chosen_change(first, reach, composition, agents[i], bits)
            if change < 0:
                continue
            row = first_row[-1] + change
        elif first_row[pair + 1] - row > 1:
            bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
            row = chosen_row(first_row, thresholds, pair, bits)
        marked += counted[row]
        for side in range(2):
            counts[old[row, side]] -= 1
            counts[new[row, side]] += 1
            if strides.size > 0:
                composition += strides[new[row, side]] - strides[old[row, side]]
        agents[i] = new[row, 0]
        if not alone:
            agents[j] = new[row, 1]
        if watching:
            group = emptied(others, leaving, row)
            if group >= 0:
                write_absorbed(absorbed, final, before + step + 1, group, counts)
                watching = False
                if not goes_on:
                    break
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3
    return marked


@inner
def replay(stream, counts, rows, numbers, length, outcomes, absorbed, final, before):
    """Plays a batch again from its first `counts`, in a random order, up to absorption."""
    others = np.empty(outcomes.outside.shape[0], np.int64)
    watch(outcomes.outside, counts, others)
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


@inner
def safe_length(outside, counts, length):
    """Number of the first of `length` interactions that can't put all agents into one group; each moves at most two."""
    others = np.empty(outside.shape[0], np.int64)
    watch(outside, counts, others)
    for group in range(others.size):
        length = min(length, (others[group] - 1) // 2)
    return length


@inner
def play_batches(n_agents, counts, stream, absorbed, final, outcomes, table, epoch, before, goes_on):
    """A round of N interactions after `before` earlier ones, or up to absorption; returns how many were marked.

    Updates `counts` (K,) and the stream; a run that stops at absorption leaves its counts in `final` only.
    """
    initiators, responders = np.empty_like(counts), np.empty_like(counts)
    touched, first = np.empty_like(counts), np.empty_like(counts)
    rows, numbers = np.empty_like(outcomes.marked), np.empty_like(outcomes.marked)
    work = initiators, responders, touched, rows, numbers
    first_row, after, thresholds, counted = outcomes.first_row, outcomes.after, outcomes.thresholds, outcomes.marked
    outside = outcomes.outside
    left, marked = n_agents, np.int64(0)
    while left > 0:
        planned = min(epoch, left)
        safe = planned if absorbed[0] >= 0 else safe_length(outside, counts, planned)
        if safe == planned or safe * safe >= n_agents:  # a shorter epoch is no better than a batch
            marked += play_epoch(stream, counts, n_agents, safe, table, outcomes)
            left -= safe
            continue
        length = min(draw_length(stream, table, 0, n_agents), left)
        copy_to(first, counts)
        for state in range(counts.size):
            touched[state] = 0
        n_rows = play_batch(stream, counts, n_agents, length, first_row, after, outcomes.chance, *work)
        for k in range(n_rows):
            marked += counted[rows[k]] * numbers[k]
        start = before + n_agents - left
        if absorbed[0] < 0 and full_group(outside, counts) >= 0:
            replay(stream, first, rows[:n_rows], numbers[:n_rows], length, outcomes, absorbed, final, start)
        left -= length
        if left > 0 and (absorbed[0] < 0 or goes_on):
            _, _, more = collide(
                stream, counts, touched, n_agents, 2 * length, 0, first_row, after, thresholds, counted
            )
            marked += more
            left -= 1
        for state in range(counts.size):
            counts[state] += touched[state]
        if absorbed[0] < 0:
            group = full_group(outside, counts)
            if group >= 0:
                write_absorbed(absorbed, final, before + n_agents - left, group, counts)
        if absorbed[0] >= 0 and not goes_on:
            break
    return marked


@compiled
def advance(active, runs, agents, outcomes, table, epoch, meetings, n_rounds, least):
    """Plays up to `n_rounds` more rounds of the runs with the numbers `active`, at least up to round `least`."""
    others = np.empty(outcomes.outside.shape[0], np.int64)
    for k in range(active.size):
        run = active[k]
        counts, stream = runs.counts[run].copy(), runs.streams[run].copy()
        absorbed, final = runs.absorbed[run].copy(), runs.final[run].copy()
        n_agents = np.int64(0)  # a literal would be a type of its own
        for state in range(counts.size):
            n_agents += counts[state]
        watch(outcomes.outside, counts, others)
        if runs.played[run] == 0:
            group = full_group(outcomes.outside, counts)
            if group >= 0:
                write_absorbed(absorbed, final, runs.played[run], group, counts)
            if runs.recorded.shape[1] > 0:
                watch(outcomes.watched, counts, runs.recorded[run, 0])
                if len(meetings.ends):
                    watch_graph(agents[run], counts.size, meetings, runs.recorded[run, 0, len(outcomes.watched) :])
        last = runs.played[run] + n_rounds
        while runs.played[run] < last and (absorbed[0] < 0 or runs.played[run] < least):
            before, goes_on = runs.played[run] * n_agents, runs.played[run] < least
            if table.size > 0:
                marked = play_batches(
                    n_agents, counts, stream, absorbed, final, outcomes, table, epoch, before, goes_on
                )
            else:
                marked = play_agents(
                    agents[run], counts, stream, absorbed, final, others, outcomes, meetings, before, goes_on
                )
            runs.played[run] += 1
            now = runs.played[run]
            if now < runs.recorded.shape[1]:
                watch(outcomes.watched, counts, runs.recorded[run, now])
                if len(meetings.ends):
                    watch_graph(agents[run], counts.size, meetings, runs.recorded[run, now, len(outcomes.watched) :])
                runs.marked[run, now] = marked
        copy_to(runs.counts[run], counts)
        copy_to(runs.streams[run], stream)
        copy_to(runs.absorbed[run], absorbed)
        copy_to(runs.final[run], final)
