"""Batches of solutions of the rate equation: programs of few shapes, shared among threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from meanfield._population.mixture import Blocks, Edges, Groups, Mixture
from meanfield._population.reaction_model import ReactionModel
from meanfield.core._export import exported
from meanfield.toolbox._errors import InputError

# An explicit method at its stability limit leaves a residual of about the tolerance, however long it runs.
STEADY_RESIDUAL = 1e-8
MAX_TIME = 2000.0  # the 1,000 rounds of the papers' simulations
TOGETHER = 2**11  # fractions advanced by one program: it waits for the slowest of its trajectories
FEW = 8  # solutions at once where there are few, as in a bisection
STIFF = 1e4  # times the fastest rate: an explicit method takes about as many steps
FIRST_STEP = 0.1  # of the shortest time scale

word_trajectories = exported("meanfield.core._trajectory", "word_trajectories")
reaction_trajectories = exported("meanfield.core._trajectory", "reaction_trajectories")


class Tolerances(NamedTuple):
    """Tolerances of the step size control, relative and absolute."""

    rtol: float = 1e-8
    atol: float = 1e-11


class Trajectories(NamedTuple):
    """Solutions of P populations from I compositions each."""

    word_share: Float[np.ndarray, "populations starts times words"]  # at the requested times
    composition: Float[np.ndarray, "populations starts ..."]  # at the end
    time: Float[np.ndarray, "populations starts"]  # of the end
    residual: Float[np.ndarray, "populations starts"]  # max|dx/dt| at the end


def integrate(
    mixtures: Mixture | Blocks | Edges | Groups,
    starts: Float[np.ndarray, "populations starts ..."],
    times: Float[np.ndarray, " times"],
    max_time: float,
    tolerances: Tolerances,
) -> Trajectories:
    """Solve for each population from each of its starts, up to a steady state, where the solution stays.

    `mixtures` are P populations stacked along a first axis, `max_time` is the longest time to wait for a steady state,
    not before the last of `times`. Compositions have the shape of kinds and states, edges as in `core.EdgeGame`.
    """
    P, n_starts, *shape = starts.shape
    x = starts.reshape(-1, *shape)
    options = {"edges": True} if isinstance(mixtures, Edges) else {}

    def solve(lanes: np.ndarray) -> tuple[np.ndarray, ...]:
        p = lanes // n_starts
        arrays = tuple(values[p] for values in mixtures)
        return word_trajectories(arrays, x[lanes], _padded(times), max_time, *tolerances, STEADY_RESIDUAL, **options)

    shares, end, time, speed, successful = _in_programs(solve, len(x), int(np.prod(shape)))
    _check_steps(successful, max_time)
    parts = ((shares[:, : len(times)], (len(times), -1)), (time, ()), (speed, ()))
    shares, time, speed = (values.reshape(P, n_starts, *shape) for values, shape in parts)
    return Trajectories(shares, end.reshape(starts.shape), time, speed)


def trajectories(
    model: ReactionModel, starts: Float[np.ndarray, "starts states"], times: np.ndarray, tolerances: Tolerances
) -> tuple[Float[np.ndarray, "starts times states"], Float[np.ndarray, "starts times"]]:
    """Solutions of a reaction model from each start at each time, and max|dx/dt| there.

    States that nobody enters and channels that nobody takes fill the model up to one of few sizes. They would lower the
    root mean square of the errors, which the tolerances make up for.
    """
    stiff = bool(model.fastest * times[-1] > STIFF)
    game = model.game
    if not len(model.changes):
        game = filled_game(game, model.n_states if stiff else None)  # dense matrices would grow eightfold
    K, E = game[0].shape[1], len(game[1])
    x0 = np.pad(starts, ((0, 0), (0, K - model.n_states)))
    stricter = np.array(tolerances) * np.sqrt(model.n_states / K)

    def solve(lanes: np.ndarray) -> tuple[np.ndarray, ...]:
        first_step = FIRST_STEP / model.fastest
        return reaction_trajectories(game, x0[lanes], _padded(times), *stricter, first_step, stiff=stiff)

    x, residual, successful = _in_programs(solve, len(starts), K + E)
    _check_steps(successful, times[-1])
    return x[:, : len(times), : model.n_states], residual[:, : len(times)]


def filled_game(game: tuple[Any, ...], n_states: int | None = None) -> tuple[Any, ...]:
    """The arrays of a `ReactionGame` with states, moves and channels that do nothing, up to one of few sizes each."""
    own, source, target, side, rate, classes, encounter_rate = game
    M, size = len(own) // 2, own.shape[1]
    K, E, filled = n_states or _size(size), _size(len(rate)), _size(M)
    sides = np.pad(own.reshape(2, M, size), ((0, 0), (0, filled - M), (0, K - size)))
    side = np.where(side < M, side, np.where(side < 2 * M, side + filled - M, 2 * filled))
    moves = (np.pad(numbers, (0, E - len(rate))) for numbers in (source, target, side, rate))
    return sides.reshape(2 * filled, K), *moves, np.pad(classes, (0, K - size), constant_values=K - 1), encounter_rate


def _padded(times: np.ndarray) -> np.ndarray:
    """`times` with the last one repeated, up to one of few lengths: each length is a program of its own."""
    return np.append(times, np.full(_size(len(times)) - len(times), times[-1]))


def _size(number: int) -> int:
    """The smallest of 8, 64, 512, … that is not smaller."""
    size = 8
    while size < number:
        size *= 8
    return size


def _in_programs(solve: Callable[[np.ndarray], tuple[np.ndarray, ...]], n_lanes: int, numbers: int) -> list[np.ndarray]:
    """Results of `solve` for all lanes; it gets one or a fixed number of them at a time, and the last may repeat."""
    most = max(1, TOGETHER // numbers)
    size = 1 if n_lanes == 1 else min(FEW, most) if n_lanes <= 4 * FEW else most
    chunks = np.minimum(np.arange(0, n_lanes, size)[:, None] + np.arange(size), n_lanes - 1)
    with ThreadPoolExecutor(
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    ) as pool:
        results = list(pool.map(solve, chunks))
    return [np.concatenate(values)[:n_lanes] for values in zip(*results, strict=True)]


def _check_steps(successful: np.ndarray, end: float) -> None:
    if not successful.all():
        raise InputError(f"time {end:g} is not reached in a million steps: expected an earlier one")
