"""The naming game agent by agent: many runs side by side, each with its own stream of random numbers.

Everything is exact: an interaction takes a random pair of agents as `theory.pairs` draws them, and words follow the
policy's probabilities to 63 bits.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from meanfield.core import HEARS
from meanfield.toolbox import summed
from theory.pairs import edge_limits, next_edge, next_pair, next_two, pair_limits
from theory.streams import ONE, next_bits
from validation.naming_game._convention import ROUNDS_AVERAGED

MAJORITY, VOTE = HEARS.index("majority"), HEARS.index("vote")
TWO = np.uint64(2)
ALL_BITS = np.uint64(2**64 - 1)


@njit(cache=True)
def draw_word(thresholds, state, bits):
    """The word of an agent in `state`, given 64 random bits."""
    draw = bits >> ONE
    word = np.uint64(0)
    for k in range(thresholds.shape[1]):
        word += np.uint64(draw >= thresholds[state, k])
    return word


@njit(cache=True)
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


@njit(cache=True)
def play_groups(n_interactions, states, stream, n_words, met, group, thresholds, successors):
    """As `play`, in groups, which are an array as in `theory.pairs`.

    `met` counts each member and the next one in a circle, so that every word said is in two pairs; if sizes differ, one
    pair of a group, since as many are counted in each interaction.
    """
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    limits, rule, n_sizes = edge_limits(states.size), group[0], group.size // 2
    most = group[n_sizes]  # sizes rise
    members, words, counts = np.empty(most, np.uint64), np.empty(most, np.int64), np.empty(n_words, np.int64)
    for _ in range(n_interactions):
        number = 0
        if n_sizes > 1:
            bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
            while number < n_sizes - 1 and np.int64(bits >> TWO) >= group[1 + n_sizes + number]:
                number += 1
        size = group[1 + number]
        counts[:] = 0
        k = 0
        while k < size:  # agents who are not in the group yet
            agent, s0, s1, s2, s3 = next_edge(limits, s0, s1, s2, s3)
            known = False
            for before in range(k):
                known |= members[before] == agent
            if known:
                continue
            members[k] = agent
            bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
            words[k] = np.int64(draw_word(thresholds, np.uint64(states[agent]), bits))
            counts[words[k]] += 1
            k += 1
        heard = words[0]  # of the speaker
        if rule == VOTE:
            heard, s0, s1, s2, s3 = most_frequent(counts, s0, s1, s2, s3)
        for k in range(size):
            word = words[k]
            if rule == MAJORITY:
                counts[word] -= 1
                heard, s0, s1, s2, s3 = most_frequent(counts, s0, s1, s2, s3)
                counts[word] += 1
            states[members[k]] = successors[states[members[k]]] + n_words * word + heard
            if k == 0 or n_sizes == 1:
                met[n_words * word + words[(k + 1) % size]] += 1
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3


@njit(cache=True)
def play(n_interactions, states, stream, n_words, met, edges, thresholds, successors):
    """Interactions: updates the states (N,) and the stream (4,), and counts pairs of words in `met` (W²,)."""
    ends, threshold, other, sizes, group = edges
    if group.size:
        play_groups(n_interactions, states, stream, n_words, met, group, thresholds, successors)
        return
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


@njit(cache=True)
def mean_word_share(states, q, share):
    """Writes Q[word] = Σ_i q_word(i) / N over the agents into `share` (W,)."""
    share[:] = 0.0
    for agent in range(states.size):
        state = np.uint64(states[agent])
        for word in range(share.size):
            share[word] += q[state, word]
    for word in range(share.size):
        share[word] /= states.size


@njit(cache=True)
def kind_word_share(states, q, share):
    """Writes Q[word] of the agents of each kind into `share` (kinds, W); NaN for a kind without agents."""
    numbers, n_states = np.zeros(share.shape[0]), q.shape[0] // share.shape[0]
    share[:] = 0.0
    for agent in range(states.size):
        kind = states[agent] // n_states
        numbers[kind] += 1
        for word in range(share.shape[1]):
            share[kind, word] += q[states[agent], word]
    share /= numbers.reshape(-1, 1)


@njit(cache=True)
def share_of_said(met, share):
    """Writes the share of each word among those said in the interactions `met` (W²,) into `share` (W,)."""
    share[:] = 0.0
    for pair in range(met.size):
        share[pair // share.size] += met[pair]
        share[pair % share.size] += met[pair]
    share /= 2 * met.sum()


@njit(cache=True)
def agreed_word(agreements, states, q):
    """The word agreed on most often, of `agreements` (W,); among equals the one likelier to be said next."""
    share = np.empty(agreements.size)
    mean_word_share(states, q, share)
    best = 0
    for word in range(1, agreements.size):
        more = agreements[word] - agreements[best]
        if more > 0 or (more == 0 and share[word] > share[best]):
            best = word
    return best


@njit(cache=True)
def note_consensus(consensus, played, test, agreed, states, q):
    """Writes the round and the word into `consensus` (2,) if there is one for the first time; as in `advance`."""
    if consensus[0] == 0 and played >= test[0] and agreed.sum() >= test[1]:
        consensus[0] = played
        consensus[1] = agreed_word(summed(agreed), states, q)


@njit(cache=True, nogil=True)
def advance(
    active,
    states,
    streams,
    agreed,
    consensus,
    shares,
    said,
    success_rate,
    kind_shares,
    played,
    n_rounds,
    min_rounds,
    test,
    edges,
    thresholds,
    successors,
    q,
):
    """Plays up to `n_rounds` more rounds of the runs with the numbers `active`, and counts them in `played` (run,).

    `edges` are as in `theory.pairs`. `test` (2,) is the first round after which convergence is tested, and the
    successes that it takes in three rounds. `agreed` (run, 3, W) holds the agreements of the last rounds, `consensus`
    (run, 2) the round and the word of consensus (0 and -1 before it). A run stops at consensus, but not before it has
    played `min_rounds`. As many rounds are recorded as the following have: `shares` (run, rounds + 1, W), the word
    share at the end of each, `said` (run, rounds + 1, W), the share of each word said, `success_rate` (run, rounds + 1)
    and `kind_shares` (run, rounds + 1, kinds, W), the word share of each kind.
    """
    n_agents, n_words = states.shape[1], agreed.shape[2]
    met = np.empty(n_words * n_words, np.int64)
    for k in range(active.size):
        run = active[k]
        last = played[run] + n_rounds
        while played[run] < last and (consensus[run, 0] == 0 or played[run] < min_rounds):
            latest = agreed[run, played[run] % ROUNDS_AVERAGED]
            met[:] = 0
            play(n_agents, states[run], streams[run], n_words, met, edges, thresholds, successors)
            for word in range(n_words):
                latest[word] = met[(n_words + 1) * word]
            played[run] += 1
            now = played[run]
            if now < shares.shape[1]:
                mean_word_share(states[run], q, shares[run, now])
            if now < said.shape[1]:
                share_of_said(met, said[run, now])
            if now < success_rate.shape[1]:
                success_rate[run, now] = latest.sum() / met.sum()
            if now < kind_shares.shape[1]:
                kind_word_share(states[run], q, kind_shares[run, now])
            note_consensus(consensus[run], now, test, agreed[run], states[run], q)
