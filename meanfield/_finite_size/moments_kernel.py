"""Compiled steps of the rate equation and of its perturbations; see `moments`.

`memory` holds the number of the memory that each state keeps; kept[k, a] is indexed by it and by the word said.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from meanfield._finite_size.path_kernel import keep
from meanfield._numerics.compiled import compiled, copy_to

# Tsitouras' method of order 5 (Computers & Mathematics with Applications 62, 770 (2011))
STAGES = (
    np.array([0.161]),
    np.array([-0.008480655492356989, 0.335480655492357]),
    np.array([2.8971530571054935, -6.359448489975075, 4.3622954328695815]),
    np.array([5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525]),
    np.array([5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383]),
    np.array([0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774]),
)
STAGE_TIMES = np.array([0.0, *(weights.sum() for weights in STAGES)])
WEIGHTS = np.array([[*weights, *[0.0] * (len(STAGES) - len(weights))] for weights in STAGES])


@compiled
@no_type_check
def step_of(x, q, memory, n_kept, step):
    """x one step further, and at each stage the memories kept and the words said."""
    n_stages = len(WEIGHTS)
    kept, said = np.empty((n_stages, n_kept, q.shape[1])), np.empty((n_stages, q.shape[1]))
    slopes, y = np.empty((n_stages, len(x))), x.copy()
    for stage in range(n_stages):
        kept_now, said_now = keep(y, q, memory, n_kept)
        copy_to(kept[stage].ravel(), kept_now.ravel())
        copy_to(said[stage], said_now)
        Q = said[stage] / said[stage].sum()
        _slope(y, kept[stage], Q, kept[stage], np.zeros_like(Q), slopes[stage])
        move(x, slopes, stage, step, y)
    return y, kept, said


@compiled
@no_type_check
def perturbations(rows, kept, said, q, memory, step, source, after):
    """Write perturbations of x one step further, driven by `source` of shape (stages, S), or (0, S) for none."""
    n_stages, n_kept, _ = kept.shape
    slopes, y = np.empty((n_stages, rows.shape[1])), np.empty(rows.shape[1])
    for row in range(len(rows)):
        copy_to(y, rows[row])
        for stage in range(n_stages):
            kept_too, change = keep(y, q, memory, n_kept)
            whole = said[stage].sum()
            Q = said[stage] / whole
            change = (change - change.sum() * Q) / whole
            _slope(y, kept_too, Q, kept[stage], change, slopes[stage])
            if len(source):
                for i in range(len(y)):
                    slopes[stage, i] += source[stage, i]
            move(rows[row], slopes, stage, step, y)
        copy_to(after[row], y)


@compiled
@no_type_check
def _slope(y, kept, Q, kept_too, change, slope):
    """Write the gain from agents who keep a memory and hear a word drawn from Q, or from its change, minus y."""
    slope[0] = -y[0]
    j = 1
    for k in range(kept.shape[0]):
        for a in range(kept.shape[1]):
            for b in range(len(Q)):
                slope[j] = kept[k, a] * Q[b] + kept_too[k, a] * change[b] - y[j]
                j += 1


@compiled
@no_type_check
def move(x, slopes, stage, step, y):
    """Write the argument of the next stage, or the result after the last one."""
    copy_to(y, x)
    for j in range(stage + 1):
        weight = step * WEIGHTS[stage, j]
        for i in range(len(x)):
            y[i] += weight * slopes[j, i]
