"""The two linear equations of the path of least action in compiled loops; see `least_action_path`.

`memory` holds the number of the memory that each state keeps, `messages` are g[a, b] at nodes and middles, `pace` is
dt/dτ there.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from meanfield._finite_size.path_kernel import keep, met, over_heard, rows
from meanfield._numerics.compiled import compiled, copy_to


@compiled
@no_type_check
def forwards(u, g, q, memory, n_kept):
    """du/dt."""
    W = q.shape[1]
    kept, _ = keep(u, q, memory, n_kept)
    out = -_leaving(g) * u
    j = 1
    for k in range(n_kept):
        for a in range(W):
            for b in range(W):
                out[j] += kept[k, a] * g[b, a]
                j += 1
    return out


@compiled
@no_type_check
def backwards(v, g, q, memory):
    """-dv/dt."""
    S, W = q.shape
    then = over_heard(rows(v, W), g.T)
    out = -_leaving(g) * v
    for i in range(S):
        for a in range(W):
            out[i] += q[i, a] * then[memory[i], a]
    return out


@compiled
@no_type_check
def _leaving(g):
    return ((g * g.T).sum() + 1) / 2


@compiled
@no_type_check
def forward_course(messages, pace, start, q, memory, n_kept):
    """u at the nodes, by Runge-Kutta of order four in τ."""
    course = np.empty(((len(messages) + 1) // 2, len(start)))
    copy_to(course[0], start)
    for n in range(len(course) - 1):
        y, first, middle, last = course[n], 2 * n, 2 * n + 1, 2 * n + 2
        one = pace[first] * forwards(y, messages[first], q, memory, n_kept)
        two = pace[middle] * forwards(y + one / 2, messages[middle], q, memory, n_kept)
        three = pace[middle] * forwards(y + two / 2, messages[middle], q, memory, n_kept)
        four = pace[last] * forwards(y + three, messages[last], q, memory, n_kept)
        copy_to(course[n + 1], y + (one + 2 * (two + three) + four) / 6)
    return course


@compiled
@no_type_check
def backward_course(messages, pace, end, q, memory):
    """v at the nodes, by the transposed steps, so that Σuv is conserved."""
    course = np.empty(((len(messages) + 1) // 2, len(end)))
    copy_to(course[-1], end)
    for n in range(len(course) - 1, 0, -1):
        y, first, middle, last = course[n], 2 * n, 2 * n - 1, 2 * n - 2
        one = pace[first] * backwards(y, messages[first], q, memory)
        two = pace[middle] * backwards(y + one / 2, messages[middle], q, memory)
        three = pace[middle] * backwards(y + two / 2, messages[middle], q, memory)
        four = pace[last] * backwards(y + three, messages[last], q, memory)
        copy_to(course[n - 1], y + (one + 2 * (two + three) + four) / 6)
    return course


@compiled
@no_type_check
def messages_of(u, v, q, memory, n_kept):
    """g[a, b] at the nodes."""
    W = q.shape[1]
    out = np.empty((len(u), W, W))
    for n in range(len(u)):
        copy_to(out[n].ravel(), met(keep(u[n], q, memory, n_kept)[0], rows(v[n], W)).ravel())
    return out
