"""The naming game agent by agent: many runs side by side, each with its own stream of random numbers.

Everything is exact: an interaction takes a random pair of agents as `theory.pairs` draws them, and words follow the
policy's probabilities to 63 bits.
"""

from __future__ import annotations

import numpy as np

from meanfield.core import HEARS
from meanfield.toolbox import compiled, inner
from theory.pairs import MATCHED, edge_limits, next_edge, next_pair, next_two, pair_limits
from theory.streams import next_bits
from validation._engine.batches import draw_below
from validation._engine.thresholds import draw_word
from validation.naming_game._convention import ROUNDS_AVERAGED
from validation.naming_game._lazy_kernel import play_on
from validation.naming_game._shares_kernel import record, write_shares

MAJORITY, VOTE, SPEAKER = map(HEARS.index, ("majority", "vote", "speaker"))
TWO = np.uint64(2)
ALL_BITS = np.uint64(2**64 - 1)


@inner
def most_frequent(counts, s0, s1, s2, s3):
    """The word said most often, of equals one at random, and the stream after it."""
    best, equals = 0, 1
    for word in range(1, counts.size):
        if counts[word] > counts[best]:
            best, equals = word, 1
        elif counts[word] == counts[best]:
            equals += 1
            bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
            if bits <= ALL_BITS // np.uint64(equals):
                best = word
    return best, s0, s1, s2, s3


@inner
def play_groups(n_interactions, states, stream, n_words, met, edges, thresholds, successors):
    """`play` in groups, along hyperedges or in matchings, whose pairs are hyperedges that are taken in their order.

    `met` counts each member and the next one in a circle, so that every word said is in two pairs.
    """
    ends, threshold, other, _, group, listed = edges
    rule, first = group[0], 0
    matched = rule == MATCHED
    if matched:
        listed, rule = matchings(n_interactions, states.size, ends, stream), MAJORITY
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    limits, among, on_edges = edge_limits(states.size), edge_limits(len(ends)), listed.size > 0
    n_sizes = group.size // 2
    largest = group[n_sizes]  # sizes rise, and are 0 for hyperedges
    if largest == 0:
        for edge in range(len(ends)):
            largest = max(largest, np.int64(ends[edge, 1]) - np.int64(ends[edge, 0]))
    members, words, counts = np.empty(largest, np.uint64), np.empty(largest, np.int64), np.empty(n_words, np.int64)
    for meeting in range(n_interactions):
        size = group[1]
        if matched:
            first = size * meeting
        elif on_edges:
            edge, s0, s1, s2, s3 = next_edge(among, s0, s1, s2, s3)
            if threshold.size > 0:
                bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
                if bits >= threshold[edge]:
                    edge = np.uint64(other[edge])
            first = np.int64(ends[edge, 0])
            size = np.int64(ends[edge, 1]) - first
        elif n_sizes > 1:
            bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
            number = 0
            while number < n_sizes - 1 and np.int64(bits >> TWO) >= group[1 + n_sizes + number]:
                number += 1
            size = group[1 + number]
        for word in range(n_words):
            counts[word] = 0
        k = 0
        while k < size:
            if on_edges:
                agent = np.uint64(listed[first + k])
            else:
                agent, s0, s1, s2, s3 = next_edge(limits, s0, s1, s2, s3)
                known = False
                for before in range(k):
                    known |= members[before] == agent
                if known:  # agents who are not in the group yet
                    continue
            members[k] = agent
            bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
            words[k] = np.int64(draw_word(thresholds, np.uint64(states[agent]), bits))
            counts[words[k]] += 1
            k += 1
        heard = words[0]  # of the speaker, who is drawn first
        if on_edges and rule == SPEAKER:
            speaker, s0, s1, s2, s3 = next_edge(edge_limits(size), s0, s1, s2, s3)
            heard = words[speaker]
        if rule == VOTE:
            heard, s0, s1, s2, s3 = most_frequent(counts, s0, s1, s2, s3)
        for k in range(size):
            word = words[k]
            if rule == MAJORITY:
                counts[word] -= 1
                heard, s0, s1, s2, s3 = most_frequent(counts, s0, s1, s2, s3)
                counts[word] += 1
            states[members[k]] = successors[states[members[k]]] + n_words * word + heard
            met[n_words * word + words[(k + 1) % size]] += 1
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3


@inner
def matchings(n_pairs, n_agents, ends, stream):
    """Pairs of random maximal matchings, one after the other, shape (2 n_pairs,); the last one is cut short.

    On a graph edges are taken in a random order where both ends are free. Without one, agents in a random order are
    pairs, all but one at most.
    """
    pairs, on_graph = np.empty(2 * n_pairs, np.uint32), len(ends) > 0
    order = np.empty(len(ends) if on_graph else n_agents, np.uint32)
    for k in range(order.size):
        order[k] = k
    taken = np.zeros(n_agents if on_graph else 0, np.int64)  # the last matching in which each agent is
    found, matching = 0, 0
    while found < n_pairs:
        matching += 1
        free = n_agents
        for k in range(order.size):
            drawn = k + draw_below(stream, order.size - k)
            order[k], order[drawn] = order[drawn], order[k]
            if on_graph:
                one, two = ends[order[k], 0], ends[order[k], 1]
                if taken[one] == matching or taken[two] == matching:
                    continue
                taken[one], taken[two] = matching, matching
            elif k % 2 == 0:
                continue
            else:
                one, two = order[k - 1], order[k]
            pairs[2 * found], pairs[2 * found + 1] = one, two
            found += 1
            free -= 2
            if found == n_pairs or free < 2:
                break
    return pairs


@inner
def play(n_interactions, states, stream, n_words, met, edges, thresholds, successors):
    """Interactions: updates the states (N,) and the stream (4,), and counts pairs of words in `met` (W²,)."""
    if edges[4].size:
        play_groups(n_interactions, states, stream, n_words, met, edges, thresholds, successors)
        return
    ends, threshold, other, sizes = edges[:4]
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    n_words = np.uint64(n_words)
    limits = pair_limits(states.size)
    on_graph, weighted, grouped, among = len(ends) > 0, threshold.size > 0, sizes.size > 0, edge_limits(len(ends))
    for _ in range(n_interactions):
        if on_graph:
            edge, s0, s1, s2, s3 = next_edge(among, s0, s1, s2, s3)
            if weighted:
                bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
                if bits >= threshold[edge]:
                    edge = np.uint64(other[edge])
            i, j = np.uint64(ends[edge, 0]), np.uint64(ends[edge, 1])
            if grouped:
                n, m, alike = np.uint64(sizes[edge, 0]), np.uint64(sizes[edge, 1]), i == j
                first, second, s0, s1, s2, s3 = next_two(n, m, s0, s1, s2, s3)
                i, j = i + first, j + second + np.uint64(alike and second >= first)
        else:
            i, j, s0, s1, s2, s3 = next_pair(limits, s0, s1, s2, s3)
        state_i = np.uint64(states[i])
        state_j = np.uint64(states[j])
        bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
        word_i = draw_word(thresholds, state_i, bits)
        bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
        word_j = draw_word(thresholds, state_j, bits)
        states[i] = np.uint64(successors[state_i]) + n_words * word_i + word_j
        states[j] = np.uint64(successors[state_j]) + n_words * word_j + word_i
        # One counter, whatever is recorded: it takes no longer than counting the agreements alone
        met[n_words * word_i + word_j] += 1
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3


@inner
def agreement(agreed):
    """All agreements in `agreed` (rounds, W), the first of the words agreed on most often, and how many of them are."""
    total, most, word, equals = 0, -1, 0, 0
    for candidate in range(agreed.shape[1]):
        number = 0
        for latest in range(agreed.shape[0]):
            number += agreed[latest, candidate]
        total += number
        if number > most:
            most, word, equals = number, candidate, 0
        equals += number == most
    return total, word, equals


@inner
def note_consensus(consensus, played, first, needed, agreed, states, q):
    """Writes the round and the word into `consensus` (2,) if there is one for the first time; as in `advance`.

    It is the word agreed on most often, of `agreed` (rounds, W); among equals the one likelier to be said next.
    """
    total, word, equals = agreement(agreed)
    if consensus[0] > 0 or played < first or total < needed:
        return
    if equals > 1:
        share = np.empty((1, agreed.shape[1]))
        write_shares(states, q, consensus[:0], len(q), share)
        for candidate in range(word + 1, agreed.shape[1]):
            less = 0
            for latest in range(agreed.shape[0]):
                less += agreed[latest, word] - agreed[latest, candidate]
            if less == 0 and share[0, candidate] > share[0, word]:
                word = candidate
    consensus[0], consensus[1] = played, word


@compiled
def advance(active, runs, records, n_rounds, limits, test, edges, groups, thresholds, successors, q, lazy):
    """Plays up to `n_rounds` more rounds of the runs with the numbers `active`, of `Runs`.

    A run stops at consensus or after limits[1] rounds, but not before it has played limits[0]. `test` (3,) is the first
    round after which convergence is tested, and the successes that it takes in three rounds among so many pairs of
    words. Of each of the `records`, an `Ensemble`, as many rounds are recorded as it has. `edges` are as in
    `theory.pairs`, and `groups` (N,) has the group of each node. `lazy` is (table, sizes) of `_lazy_kernel`, empty for
    policies that are known in all states: a run waits where a state has no row.
    """
    n_agents, n_words = runs.rows.shape[1], runs.agreed.shape[2]
    varies = edges[5].size > 0 or edges[4].size > 2  # meetings have more words or fewer
    table, sizes = lazy
    for run in active:
        done, met, agreed, consensus = runs.done[run], runs.met[run], runs.agreed[run], records.consensus[run]
        rows, stream = runs.rows[run], runs.streams[run]
        last = min(done[0] + n_rounds, limits[1])
        done[2] = 0
        if done[0] == 0:
            record(done[0], run, met, rows, q, edges, groups, records)
        while done[0] < last and (consensus[0] == 0 or done[0] < limits[0]):
            if done[1] == 0:
                for pair in range(met.size):
                    met[pair] = 0
            latest, now, needed = done[0] % ROUNDS_AVERAGED, done[0] + 1, test[1]
            if sizes.size == 0:
                play(n_agents, rows, stream, n_words, met, edges, thresholds, successors)
            else:
                done[1] = play_on(done[1], runs.states[run], rows, stream, met, thresholds, table, sizes)
                if done[1] < n_agents:
                    done[2] = 1
                    break
            for word in range(n_words):
                agreed[latest, word] = met[(n_words + 1) * word]
            if varies:
                counted = 0
                for pair in range(met.size):
                    counted += met[pair]
                runs.counted[run, latest] = counted
                counted = 0
                for k in range(ROUNDS_AVERAGED):
                    counted += runs.counted[run, k]
                needed = (test[1] * counted + test[2] - 1) // test[2]
            if sizes.size > 0:
                unknown = False
                for agent in range(n_agents):
                    unknown |= rows[agent] < 0
                # The word likelier to be said next only decides between equals, and is not asked for without them.
                total, _, equals = agreement(agreed)
                ends = consensus[0] == 0 and now >= test[0] and total >= needed
                if unknown and (now < records.word_share.shape[1] or (equals > 1 and ends)):
                    done[2] = 1
                    break
            done[0], done[1] = now, 0
            if now <= limits[0]:
                record(now, run, met, rows, q, edges, groups, records)
            note_consensus(consensus, now, test[0], needed, agreed, rows, q)
