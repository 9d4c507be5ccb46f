"""Batches of solutions of the rate equation, as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from meanfield._memory import MemorySpace
from meanfield._mixture import Mixture
from meanfield._rows import heard_rows, spoken_rows
from meanfield._tsit5 import MAX_STEPS as MAX_STEPS
from meanfield._tsit5 import Problems, integrate_problems
from meanfield._tsit5 import Tolerances as Tolerances

# An explicit method at its stability limit leaves a residual of about the tolerance, however long it runs.
STEADY_RESIDUAL = 1e-8
FIRST_STEP = 0.1
# Numbers in the compositions of a batch: with more of them, a step leaves the cache of a core.
BATCH_NUMBERS = 2**15


class Courses(NamedTuple):
    """Solutions of P populations from I compositions each.

    Attributes
    ----------
    word_share
        At the times asked for, shape (P, I, T, W).
    composition
        Where the solution ends, shape (P, I, M, S).
    time
        When, shape (P, I).
    residual
        max|dx/dt| there, shape (P, I).
    """

    word_share: Float[np.ndarray, "populations starts times words"]
    composition: Float[np.ndarray, "populations starts kinds states"]
    time: Float[np.ndarray, "populations starts"]
    residual: Float[np.ndarray, "populations starts"]


def integrate(
    mixtures: Mixture,
    starts: Float[np.ndarray, "populations starts kinds states"],
    times: Float[np.ndarray, " times"],
    max_time: float,
    tolerances: Tolerances,
    space: MemorySpace,
) -> Courses:
    """Solve for each population and each of its starts, up to a steady state, where it stays.

    Parameters
    ----------
    mixtures
        P of them, stacked along a first axis.
    starts
        Compositions at time 0.
    times
        When to save the word share.
    max_time
        When to give up waiting for a steady state; not before the last of `times`.
    """
    P, n_starts, M, S = starts.shape
    q = np.ascontiguousarray(np.swapaxes(mixtures.q, -1, -2))
    flat, population = starts.reshape(P * n_starts, M * S), np.repeat(np.arange(P), n_starts)
    size = max(1, BATCH_NUMBERS // (M * S))
    ends = []
    for first in range(0, len(flat), size):
        batch = slice(first, first + size)
        problems = _problems(Mixture(q, mixtures.share, mixtures.committed), population[batch], flat[batch], space)
        options = {"first_step": FIRST_STEP, "at_rest": STEADY_RESIDUAL}
        ends.append(integrate_problems(problems, times, max_time, tolerances, **options))
    shares, x, when, slope = (np.concatenate(parts) for parts in zip(*ends, strict=True))
    shares = shares + mixtures.committed[population][:, None]
    parts = ((shares, (len(times), -1)), (x, (M, S)), (when, ()), (np.abs(slope).max(1), ()))
    return Courses(*(values.reshape(P, n_starts, *shape) for values, shape in parts))


def _problems(mixtures: Mixture, population: np.ndarray, starts: np.ndarray, space: MemorySpace) -> Problems:
    """Of the populations with the given numbers; q is (P, M, W, S). Observed is what the uncommitted say."""
    M, _, S = mixtures.q.shape[1:]
    first = Mixture(*(values[population[:1]] for values in mixtures))
    alone = bool((population == population[0]).all())

    def of(lanes: np.ndarray) -> Mixture:
        """The populations of the lanes, one for all of them where it is the same."""
        return first if alone else Mixture(*(values[population[lanes]] for values in mixtures))

    def observe(x: np.ndarray, lanes: np.ndarray) -> np.ndarray:
        mixture = of(lanes)
        said = (mixture.q @ x.reshape(-1, M, S, 1))[..., 0]
        return (mixture.share[..., None] * said).sum(1)

    def rate(x: np.ndarray, lanes: np.ndarray) -> np.ndarray:
        mixture, x = of(lanes), x.reshape(-1, M, S)
        # Relative to its sum, as in `mixture_word_share`
        said = (mixture.q @ x[..., None])[..., 0]
        Q = (mixture.share[..., None] * said / said.sum(-1, keepdims=True)).sum(1) + mixture.committed
        slope = heard_rows(spoken_rows(x, mixture.q, space), Q[:, None])
        slope -= x
        return slope.reshape(len(x), M * S)

    return Problems(rate, observe, starts)
