"""Stationary distributions of the chain of flows (see `flow_successors`), in compiled loops.

All operations are sums of positive terms, so that entries have full relative accuracy however small they are.
"""

from __future__ import annotations

from typing import no_type_check  # types are checked by tests at run time, which compiled code can't have

import numpy as np

from meanfield._numerics.compiled import compiled, copy_to

NOTHING, LEAST = 1e-290, 1e-280  # a leak, and the largest number that says that there is nothing else
LARGE = 1e10  # above, distributions are scaled down, before a ratio of up to 1e290 overflows
SLOWEST = 0.95  # a factor between changes from cycle to cycle that is nearer to 1 may hide a slower one
SPARSE = 0.35  # of a row; above, a loop over all of it is faster than one over its entries


@compiled
@no_type_check
def eliminate(chain, law, first):
    """Write the stationary distribution of a chain (n, n), which is overwritten; each entry to full relative accuracy.

    Returns whether every state with entries in its row is left in the end; if not, products of entries underflow.

    Diagonals are not read: a state is left at the sum of the other entries of its row. Rows and columns of states
    before `first`, which get weight 0, are zero. O(n³), and far less for sparse chains, which elimination keeps largely
    sparse. Source: Grassmann, Taksar and Heyman, Operations Research 33, 1107 (1985).
    """
    n, left = len(law), True
    columns = np.empty(n, np.int64)
    for k in range(n - 1, 0, -1):
        # A state from which none of the remaining ones is reached directly holds all the weight: a leak of 1e-290
        # says so without a division by zero.
        leaves, entries = NOTHING, 0
        for j in range(k):
            if chain[k, j] > 0:
                leaves += chain[k, j]
                columns[entries] = j
                entries += 1
        if leaves <= LEAST:
            for j in range(n):
                left &= chain[k, j] == 0
        for i in range(k):
            if chain[i, k] > 0:
                chain[i, k] /= leaves
                ratio = chain[i, k]
                if entries > SPARSE * k:
                    for j in range(k):
                        chain[i, j] += ratio * chain[k, j]
                else:
                    for e in range(entries):
                        chain[i, columns[e]] += ratio * chain[k, columns[e]]
    total = 0.0
    for k in range(n):
        weight = 1.0 if k == first else 0.0
        for i in range(k):
            weight += law[i] * chain[i, k]
        law[k] = weight
        total += weight
        if total > LARGE:
            for i in range(k + 1):
                law[i] /= total
            total = 1.0
    for k in range(n):
        law[k] /= total
    return left


@compiled
@no_type_check
def sweep(law, heard, said, work):
    """H interactions one after another, after which everything that was heard is forgotten.

    Flows that differ only in their oldest interaction have the same successors.
    """
    W = len(heard)
    D = W * W  # flows that share their successors; J of them have different ends, and W divides J
    J = len(law) // D
    steps, flows = 1, W
    while flows < len(law):
        steps, flows = steps + 1, flows * D
    for _ in range(steps):
        total = 0.0
        for j in range(J):
            for b in range(W):
                for a in range(W):
                    weight = 0.0
                    for oldest in range(D):
                        flow = oldest * J + j
                        weight += law[flow] * said[flow, b, a]
                    weight *= heard[j % W, b]
                    work[(W * j + b) * W + a] = weight
                    total += weight
        for flow in range(len(law)):
            law[flow] = work[flow] / total


@compiled
@no_type_check
def balance(law, heard, said, successors, label, chain, weight):
    """Rescale the weight of each aggregate to the stationary distribution of the chain between them that `law` implies.

    Returns whether products of its entries are numbers, as `eliminate` does.
    """
    W, n = len(heard), len(chain)
    chain[:] = 0.0
    inside = np.zeros(n)
    for flow in range(len(law)):
        inside[label[flow]] += law[flow]
    for flow in range(len(law)):
        if law[flow] > 0:
            part = law[flow] / inside[label[flow]]
            for b in range(W):
                for a in range(W):
                    chain[label[flow], label[successors[flow, b, a]]] += part * heard[flow % W, b] * said[flow, b, a]
    first = 0
    while inside[first] == 0:
        first += 1
    left = eliminate(chain, weight, first)
    for flow in range(len(law)):
        if law[flow] > 0:
            law[flow] *= weight[label[flow]] / inside[label[flow]]
    return left


@compiled
@no_type_check
def iterate(heard, start, said, successors, label, tolerance, max_cycles, laws):
    """Write the distributions for probabilities P(b | a) to hear b, each from the same start; return which converge."""
    M, W = len(start), heard.shape[1]
    n = label.max() + 1
    chain, weight, work, before = np.empty((n, n)), np.empty(n), np.empty(M), np.empty(M)
    share, converged = np.empty(W), np.zeros(len(heard), np.bool_)
    for r in range(len(heard)):
        law = laws[r]
        copy_to(law, start)
        share[:] = np.inf
        change = np.inf
        for _ in range(max_cycles):
            copy_to(before, law)
            left = balance(law, heard[r], said, successors, label, chain, weight)
            sweep(law, heard[r], said, work)
            last, change = change, _change(law, before, share)
            slowness = min(SLOWEST, change / last) if 0 < last < np.inf else 0.0
            if left and change * max(1.0, slowness / (1 - slowness)) <= tolerance:
                converged[r] = True
                break
    return converged


@compiled
@no_type_check
def _change(law, before, share):
    """The larger of the largest relative change of the word share, which is written to `share`, and Σ|δf|."""
    W, change = len(share), 0.0
    for flow in range(len(law)):
        change += abs(law[flow] - before[flow])
    for word in range(W):
        said = 0.0
        for flow in range(word, len(law), W):
            said += law[flow]
        moved = abs(said - share[word])
        change = max(change, moved / said if said > 0 else moved)
        share[word] = said
    return change


@compiled
@no_type_check
def eliminated(heard, said, successors, members, laws):
    """Write the distributions for probabilities P(b | a) to hear b, by elimination on all flows of the class `members`.

    The class is closed. Where products of small probabilities underflow, the distribution is NaN.
    """
    n, W = len(members), heard.shape[1]
    place = np.zeros(len(said), np.int64)
    for k in range(n):
        place[members[k]] = k
    chain, law = np.empty((n, n)), np.empty(n)
    for r in range(len(heard)):
        chain[:] = 0.0
        for k in range(n):
            flow = members[k]
            for b in range(W):
                for a in range(W):
                    # What lies outside the class is never reached
                    if heard[r, flow % W, b] * said[flow, b, a] > 0:
                        chain[k, place[successors[flow, b, a]]] += heard[r, flow % W, b] * said[flow, b, a]
        left = eliminate(chain, law, 0)
        laws[r] = 0.0
        for k in range(n):
            laws[r, members[k]] = law[k] if left else np.nan
