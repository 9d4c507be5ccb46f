"""Records of a round: words said, success, shares among agents and at nodes, and disagreement across edges.

Loops are written out, since numba takes seconds to compile slices, sums and quotients of arrays.
"""

from __future__ import annotations

import numpy as np

from meanfield.toolbox import inner


@inner
def write_shares(states, q, groups, n_states, share):
    """Writes Q[word] = Σ_i q_word(i) / n over the n agents of each group into `share` (groups, W); NaN for none.

    Groups are `groups` (N,), or, where these are empty, kinds of `n_states` rows of `q` each.
    """
    n_groups, n_words = share.shape
    numbers = np.zeros(n_groups)
    for group in range(n_groups):
        for word in range(n_words):
            share[group, word] = 0.0
    for agent in range(states.size):
        state, group = np.int64(states[agent]), np.int64(0)
        if groups.size > 0:
            group = groups[agent]
        elif n_groups > 1:
            group = state // n_states
        numbers[group] += 1
        for word in range(n_words):
            share[group, word] += q[state, word]
    for group in range(n_groups):
        for word in range(n_words):
            share[group, word] = share[group, word] / numbers[group] if numbers[group] > 0 else np.nan


@inner
def interface_density(states, q, edges):
    """The mean of 1 - Σ_w Π_i q_w(i) over edges of agents i, of hyperedges, or of pairs of agents without edges."""
    ends, _, _, sizes, _, members = edges
    on_edges, alike, n = len(ends) > 0 and sizes.size == 0, 0.0, states.size
    for word in range(q.shape[1]):
        if on_edges:
            for edge in range(len(ends)):
                if members.size > 0:
                    all_say = 1.0
                    for k in range(ends[edge, 0], ends[edge, 1]):
                        all_say *= q[states[members[k]], word]
                else:
                    all_say = q[states[ends[edge, 0]], word] * q[states[ends[edge, 1]], word]
                alike += all_say / len(ends)
        else:
            total, squares = 0.0, 0.0
            for agent in range(n):
                share = q[states[agent], word]
                total, squares = total + share, squares + share * share
            alike += (total * total - squares) / (n * (n - 1.0))
    return 1.0 - alike


@inner
def record(now, run, met, states, q, edges, groups, records):
    """Records the pairs of words `met` (W²,) in the round `now`, and what agents would say next; round 0 is the start.

    What the start has of all agents and of their kinds is the same in all runs, and recorded before.
    """
    n_words, pairs, agreed = q.shape[1], 0, 0
    for pair in range(met.size):
        pairs += met[pair]
        agreed += met[pair] if pair % (n_words + 1) == 0 else 0
    if now > 0 and now < records.said.shape[1]:
        for word in range(n_words):
            said = 0
            for other in range(n_words):
                said += met[n_words * word + other] + met[n_words * other + word]
            records.said[run, now, word] = said / (2 * pairs)
    if now > 0 and now < records.success_rate.shape[1]:
        records.success_rate[run, now] = agreed / pairs
    if now > 0 and now < records.word_share.shape[1]:
        write_shares(states, q, groups[:0], len(q), records.word_share[run, now : now + 1])
    if now > 0 and now < records.kind_word_share.shape[1]:
        n_kinds = records.kind_word_share.shape[2]
        write_shares(states, q, groups[:0], len(q) // n_kinds, records.kind_word_share[run, now])
    if now < records.interface_density.shape[1]:
        records.interface_density[run, now] = interface_density(states, q, edges)
    if now < records.group_word_share.shape[1]:
        write_shares(states, q, groups, len(q), records.group_word_share[run, now])
    if now < records.node_word_share.shape[1]:
        for node in range(states.size):
            for word in range(n_words):
                records.node_word_share[run, now, node, word] = q[states[node], word]
