"""Batches of solutions of the rate equation, as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from meanfield._numerics.compiled import in_threads
from meanfield._numerics.tsit5 import MAX_STEPS, Tolerances
from meanfield._population.mixture import Mixture
from meanfield._population.trajectory_kernel import FIRST_STEP, LEAST_WORK, NO_MOVES, follow
from meanfield.toolbox._errors import InputError

# An explicit method at its stability limit leaves a residual of about the tolerance, however long it runs.
STEADY_RESIDUAL = 1e-8


class Courses(NamedTuple):
    """Solutions of P populations from I compositions each."""

    word_share: Float[np.ndarray, "populations starts times words"]  # at the requested times
    composition: Float[np.ndarray, "populations starts kinds states"]  # at the end
    time: Float[np.ndarray, "populations starts"]  # of the end
    residual: Float[np.ndarray, "populations starts"]  # max|dx/dt| at the end


def integrate(
    mixtures: Mixture,
    starts: Float[np.ndarray, "populations starts kinds states"],
    times: Float[np.ndarray, " times"],
    max_time: float,
    tolerances: Tolerances,
) -> Courses:
    """Solve for each population from each of its starts, up to a steady state, where the solution stays.

    `mixtures` are P populations stacked along a first axis, `max_time` is the longest time to wait for a steady state,
    not before the last of `times`.
    """
    P, n_starts, M, S = starts.shape
    q, share, committed = (np.array(values, dtype=np.float64, order="C") for values in mixtures)
    x, times = np.array(starts, dtype=np.float64, order="C").reshape(-1, M, S), np.array(times, dtype=np.float64)
    limits = (float(max_time), *map(float, tolerances), FIRST_STEP, STEADY_RESIDUAL, float(MAX_STEPS))
    shares, ends = np.empty((len(x), len(times), q.shape[-1])), np.empty((len(x), 2))

    def solve(lanes: slice) -> None:
        for lane in range(lanes.start, lanes.stop):
            p = lane // n_starts
            ends[lane] = follow(x[lane], (q[p], share[p], committed[p]), NO_MOVES, times, limits, shares[lane])

    in_threads(solve, len(x), LEAST_WORK * M * S)
    if (ends[:, 1] < 0).any():
        raise InputError(f"time {max_time:g} is not reached in {MAX_STEPS:,} steps: expected an earlier one")
    shares += np.repeat(committed, n_starts, axis=0)[:, None]
    parts = ((shares, shares.shape[1:]), (x, (M, S)), (ends[:, 0], ()), (ends[:, 1], ()))
    return Courses(*(values.reshape(P, n_starts, *shape) for values, shape in parts))
