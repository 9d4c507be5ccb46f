"""Shares of words among agents: of all, of kinds, at nodes of a graph and across its edges."""

from __future__ import annotations

import numpy as np
from numba import njit


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
def group_word_share(states, q, groups, share):
    """Writes Q[word] of the agents of each of the `groups` (N,) into `share` (groups, W); NaN for none."""
    numbers = np.zeros(share.shape[0])
    share[:] = 0.0
    for agent in range(states.size):
        numbers[groups[agent]] += 1
        for word in range(share.shape[1]):
            share[groups[agent], word] += q[states[agent], word]
    share /= numbers.reshape(-1, 1)


@njit(cache=True)
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


@njit(cache=True)
def record_said(now, run, met, records):
    """Records what was said in the round `now`, with the pairs of words `met` (W²,)."""
    n_words = records.said.shape[2]
    if now < records.said.shape[1]:
        share = records.said[run, now]
        share[:] = 0.0
        for pair in range(met.size):
            share[pair // n_words] += met[pair]
            share[pair % n_words] += met[pair]
        share /= 2 * met.sum()
    if now < records.success_rate.shape[1]:
        records.success_rate[run, now] = met[:: n_words + 1].sum() / met.sum()


@njit(cache=True)
def record_shares(now, run, states, q, edges, groups, records):
    """Records what agents would say next at the end of the round `now`."""
    if now < records.word_share.shape[1] and now > 0:
        mean_word_share(states, q, records.word_share[run, now])
    if now < records.kind_word_share.shape[1] and now > 0:
        share = records.kind_word_share[run, now]
        group_word_share(states, q, states // (q.shape[0] // share.shape[0]), share)
    if now < records.interface_density.shape[1]:
        records.interface_density[run, now] = interface_density(states, q, edges)
    if now < records.group_word_share.shape[1]:
        group_word_share(states, q, groups, records.group_word_share[run, now])
    if now < records.node_word_share.shape[1]:
        group_word_share(states, q, np.arange(states.size), records.node_word_share[run, now])
