"""Products of drift and noise in compiled loops; `path_equations` explains them.

`memory` holds the number of the memory that each state keeps; kept[k, a] and R[k, a, b] are indexed by it, by the word
said and by the word heard.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from meanfield._numerics.compiled import compiled, summed


@compiled
@no_type_check
def keep(x, q, memory, n_kept):
    """kept[k, a] = Σ_i x_i q_a(i) over the states i that keep k, and its sum over k."""
    W = q.shape[1]
    kept, said = np.zeros((n_kept, W)), np.zeros(W)
    for i in range(len(x)):
        for a in range(W):
            one = x[i] * q[i, a]
            kept[memory[i], a] += one
            said[a] += one
    return kept, said


@compiled
@no_type_check
def over_heard(R, weight):
    """Σ_b weight[a, b] R[k, a, b]."""
    K, W, _ = R.shape
    out = np.zeros((K, W))
    for k in range(K):
        for a in range(W):
            for b in range(W):
                out[k, a] += weight[a, b] * R[k, a, b]
    return out


@compiled
@no_type_check
def met(kept, R):
    """Σ_k kept[k, a] R[k, a, b]."""
    K, W, _ = R.shape
    out = np.zeros((W, W))
    for k in range(K):
        for a in range(W):
            for b in range(W):
                out[a, b] += kept[k, a] * R[k, a, b]
    return out


@compiled
@no_type_check
def rows(w, W):
    """R[k, a, b], the value of the state that follows k after saying a and hearing b."""
    return w[1:].reshape(-1, W, W)


@compiled
@no_type_check
def drift(x, q, memory, n_kept):
    """F(x)."""
    W = q.shape[1]
    kept, said = keep(x, q, memory, n_kept)
    Q = said / said.sum()
    out = -x
    after = rows(out, W)
    for k in range(n_kept):
        for a in range(W):
            for b in range(W):
                after[k, a, b] += kept[k, a] * Q[b]
    return out


@compiled
@no_type_check
def transposed(x, w, q, memory, n_kept):
    """J(x)ᵀw."""
    S, W = q.shape
    kept, Q = keep(x, q, memory, n_kept)
    total, R = Q.sum(), rows(w, W)
    effect = summed(met(kept, R)) / total
    Q = Q / total
    effect -= effect @ Q
    then = over_heard(R, np.ones((W, 1)) * Q)
    out = -w
    for i in range(S):
        for a in range(W):
            out[i] += q[i, a] * (then[memory[i], a] + effect[a])
    return out


@compiled
@no_type_check
def noise(x, w, q, memory, n_kept):
    """D(x)w."""
    S, W = q.shape
    R, weighted = rows(w, W), x * w
    kept, Q = keep(x, q, memory, n_kept)
    kept_weighted, said_weighted = keep(weighted, q, memory, n_kept)
    jump = met(kept, R) - said_weighted.reshape(W, 1)
    lost = over_heard(R, np.ones((W, 1)) * Q) + summed(jump)
    out = weighted
    for i in range(S):
        for a in range(W):
            out[i] -= x[i] * q[i, a] * lost[memory[i], a]
    after = rows(out, W)
    for k in range(n_kept):
        for a in range(W):
            for b in range(W):
                after[k, a, b] += kept[k, a] * (Q[b] * R[k, a, b] + jump[b, a]) - Q[b] * kept_weighted[k, a]
    return out
