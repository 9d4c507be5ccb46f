"""Correlations of an agent's messages along a path of least action, in compiled loops; see `next_order`.

Arguments are those of `message_kernel`. Columns, the last dimension, are the W² messages of one time.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from meanfield._finite_size.message_kernel import backwards
from meanfield._finite_size.path_kernel import keep, met, rows
from meanfield._numerics.compiled import compiled


@compiled
@no_type_check
def correlations(messages, pace, u, v, g, q, memory, n_kept, negligible):
    """Covariance of the messages ab at node n and cd at node m ≤ n of one agent, shape (nodes, nodes, W², W²).

    At n = m the encounter cd comes first. Left out where the distribution after cd is within `negligible` of that
    without.
    """
    n_nodes, S = u.shape
    W = q.shape[1]
    C = W * W
    out = np.zeros((n_nodes, n_nodes, C, C))
    kept, y, slope, middle, end = _zeros(n_kept, W, C), _zero(S, C), _zero(S, C), _zero(S, C), _zero(S, C)
    for m in range(n_nodes):
        _after(u[m], g[m], q, memory, n_kept, y)
        for n in range(m, n_nodes):
            _gather(y, q, memory, kept)
            _read(kept, v[n], out[n, m])
            if n == n_nodes - 1 or _size(y, v[n]) < negligible:
                break
            first, half, last = 2 * n, 2 * n + 1, 2 * n + 2
            _rate(y, messages[first], q, memory, kept, slope)
            _add(y, pace[first] / 6, slope, end)
            _add(y, pace[first] / 2, slope, middle)
            _rate(middle, messages[half], q, memory, kept, slope)
            _add(end, pace[half] / 3, slope, end)
            _add(y, pace[half] / 2, slope, middle)
            _rate(middle, messages[half], q, memory, kept, slope)
            _add(end, pace[half] / 3, slope, end)
            _add(y, pace[half], slope, middle)
            _rate(middle, messages[last], q, memory, kept, slope)
            _add(end, pace[last] / 6, slope, y)
    return out


@compiled
@no_type_check
def final_correlations(messages, pace, u, v, g, final, q, memory, n_kept):
    """Covariance of the messages of one agent at each node with `final` of the state where it ends, (nodes, W²)."""
    n_nodes = len(u)
    W = q.shape[1]
    out = np.zeros((n_nodes, W * W))
    y = final * v[-1]
    for n in range(n_nodes - 1, -1, -1):
        mean, said = (u[n] * y).sum(), met(keep(u[n], q, memory, n_kept)[0], rows(y, W))
        for c in range(W * W):
            out[n, c] = said[c // W, c % W] - g[n, c] * mean
        if n > 0:
            first, half, last = 2 * n, 2 * n - 1, 2 * n - 2
            one = pace[first] * backwards(y, messages[first], q, memory)
            two = pace[half] * backwards(y + one / 2, messages[half], q, memory)
            three = pace[half] * backwards(y + two / 2, messages[half], q, memory)
            four = pace[last] * backwards(y + three, messages[last], q, memory)
            y = y + (one + 2 * (two + three) + four) / 6
    return out


@compiled
@no_type_check
def _zero(n, C):
    return np.zeros((n, C))


@compiled
@no_type_check
def _zeros(K, W, C):
    return np.zeros((K, W, C))


@compiled
@no_type_check
def _after(u, g, q, memory, n_kept, y):
    """What the encounter cd makes of u, less its mean."""
    S, C = y.shape
    W = q.shape[1]
    kept, _ = keep(u, q, memory, n_kept)
    for i in range(S):
        for c in range(C):
            y[i, c] = -g[c] * u[i]
    for k in range(n_kept):
        for c in range(C):
            y[1 + k * C + c, c] += kept[k, c // W]


@compiled
@no_type_check
def _gather(y, q, memory, kept):
    """kept[k, a, c] = Σ_i y[i, c] q_a(i)."""
    K, W, C = kept.shape
    for k in range(K):
        for a in range(W):
            for c in range(C):
                kept[k, a, c] = 0.0
    for i in range(y.shape[0]):
        k = memory[i]
        for a in range(W):
            chance = q[i, a]
            for c in range(C):
                kept[k, a, c] += y[i, c] * chance


@compiled
@no_type_check
def _read(kept, v, out):
    """Σ_k kept[k, a, c] v of the state that follows k after a and b."""
    K, W, C = kept.shape
    j = 1
    for k in range(K):
        for a in range(W):
            for b in range(W):
                for c in range(C):
                    out[a * W + b, c] += kept[k, a, c] * v[j]
                j += 1


@compiled
@no_type_check
def _size(y, v):
    total = 0.0
    for i in range(y.shape[0]):
        for c in range(y.shape[1]):
            total += abs(y[i, c]) * v[i]
    return total


@compiled
@no_type_check
def _rate(y, g, q, memory, kept, out):
    """dy/dt, that of u."""
    K, W, C = kept.shape
    _gather(y, q, memory, kept)
    leaving = 0.5
    for a in range(W):
        for b in range(W):
            leaving += g[a, b] * g[b, a] / 2
    for c in range(C):
        out[0, c] = -leaving * y[0, c]
    j = 1
    for k in range(K):
        for a in range(W):
            for b in range(W):
                for c in range(C):
                    out[j, c] = kept[k, a, c] * g[b, a] - leaving * y[j, c]
                j += 1


@compiled
@no_type_check
def _add(y, step, slope, out):
    for i in range(y.shape[0]):
        for c in range(y.shape[1]):
            out[i, c] = y[i, c] + step * slope[i, c]
