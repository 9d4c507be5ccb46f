"""Mean and variance of word shares, or of fractions, among N agents.

`core._moments` has the equations of order 1/N, `core._second_order` those of order 1/N².
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np
import xarray as xr
from scipy.interpolate import make_interp_spline
from tqdm import tqdm

from meanfield._fixed_points.fixed_points import fixed_points
from meanfield._numerics.blas import one_blas_thread
from meanfield._population.drift import TIME_PER_ROUND
from meanfield._population.population import Population
from meanfield._population.provenance import stamp
from meanfield._population.reaction_model import ReactionModel
from meanfield._population.stacks import Games, as_games
from meanfield._reactions.solve import initial_compositions, state_coords
from meanfield.core._export import exported
from meanfield.toolbox._arguments import increasing_times, shown, whole_number
from meanfield.toolbox._columns import Columns, labelled
from meanfield.toolbox._errors import ConvergenceError, InputError
from meanfield.toolbox._memory_budget import check_memory

correlation_program = exported("meanfield.core._moments", "correlation_program")
driven_program = exported("meanfield.core._moments", "driven_program")
cumulants_later = exported("meanfield.core._second_order", "cumulants_later")

BYTES_A_SIZE = 50  # of a law, as measured
STEP = 0.2  # over the fastest rate, of fifth order: halving it changes the moments by less than 2e-5
BLOCK = 25  # steps of one call of a program
RANK = 36  # of the correlations, at first
MOST_RANK = 512
# Largest neglected eigenvalue of the correlations, relative to the largest kept: neglected ones may grow again
NEGLECTED = 1e-9
SPLINE = 7  # degree, between the steps
MOST_STATES = 100  # at order 2, where a step takes S⁴ operations: a minute for 30 rounds of 85 states
MAX_NUMBERS = 2**26  # steps times states: 0.5 GB for the source of V, and as much for its spline
WEAK = 0.2  # correction of the mean in standard deviations; in simulations these were right to 25 % below
KNOWN = 1e-9  # variance, below which rounding may tell
LOBATTO = np.array([0.0, (1 - 5**-0.5) / 2, (1 + 5**-0.5) / 2, 1.0])  # nodes of Lobatto's rule with four points


def finite_size(
    policy: xr.Dataset | Population | ReactionModel,
    *,
    n_agents: int | Sequence[int] | np.ndarray | None = None,
    times: Sequence[float] | np.ndarray | None = None,
    initial: xr.DataArray | np.ndarray | None = None,
    order: int = 1,
    progress: bool | None = None,
) -> xr.Dataset:
    """Mean and variance of the word share over time among N agents who start with empty memories.

    After N·t/2 interactions the word share of N agents has

        mean Q(t) + qᵀV(t)/N + O(1/N²)  (refined mean field),   variance qᵀC(t)q/N + O(1/N²)  (linear noise).

    This describes populations that follow one path to one attractor. Where there are others, a part of the groups may
    end at them, which neither mean nor variance counts: it holds while the standard deviation is small compared with
    the distance to the saddle, and afterwards `group_size_law` tells which word wins. A warning says so if
    `n_agents` is given. Reaction models are not searched for other attractors; `fixed_points` does that. A place where
    the drift is small, as next to where another attractor vanished, holds groups back as well: a warning tells where
    √(V²/CN), a measure of how far the drift is from linear across a standard deviation, exceeds 0.2. Close to
    consensus, where populations differ by how far they have got, the next order is relatively large: for GPT-4o
    {African, White} the variance is too small by 130/N of itself after four rounds and by 450/N after six. With
    `order` 2 both have the terms of order 1/N² too, and errors of order 1/N³.

    In a reaction model encounters and moves happen at the times of Poisson processes, and the fractions themselves have
    mean x + V/N and variance C/N. Agents meet others, while rates that are functions of the composition count all N.

    Parameters
    ----------
    policy
        One policy, of W ≥ 2 words, a stack over model and pair, a population, whose committed agents count among the N
        (in groups to order 1), or a reaction model.
    n_agents
        Population sizes N ≥ 2 for which to return `mean` and `variance`.
    times
        Increasing times from 0, shape (T,); two units are a round of N interactions. Default: 0 to 60 in steps of 0.5;
        required for a reaction model.
    initial
        For a reaction model: the composition at time 0, the same in every population of N.
    order
        1, or 2 for games of up to 100 states: memories of three interactions with two words take a minute.
    progress
        Show a progress bar. Default: on a terminal. Memories of five interactions take ten seconds or more.

    Returns
    -------
    Dataset with

    - `word_share` (time, word), from the rate equation;
    - `word_share_correction` (time, word), qᵀV, to be divided by N;
    - `word_share_variance` (time, word), the diagonal of qᵀCq, to be divided by N;
    - `word_share_correction_2` and `word_share_variance_2`, to be divided by N², at order 2;
    - `mean` and `variance` (n_agents, time, word), if `n_agents` is given.

    attrs["attractors"] names the attractors of a policy or a population, in a stack a variable: 'A; mostly B (0.96)'.
    If the search for them failed, it says why.

    For a reaction model `composition` stands for `word_share`, (time, state).

    Raises
    ------
    InputError
        If an argument is not as described, agents have more than 100 states at order 2, so many steps in so many
        states take too much memory, agents start in too many states, or sizes and times take more than 16 GiB (or the
        GiB in the environment variable MEANFIELD_MEMORY).

    See Also
    --------
    group_size_law : the probability that N agents end at the strong word
    validation.simulate : exact runs of N agents
    solve : the limit of many agents

    Examples
    --------
    >>> policy = meanfield.datasets.smollm2().sel(pair="his/her")
    >>> law = meanfield.finite_size(policy, n_agents=[10, 1000], times=[10.0]).sel(word="his", time=10)
    >>> law["mean"].values.round(3)
    array([0.528, 0.529])
    >>> (law["variance"] ** 0.5).values.round(3)  # after five rounds
    array([0.067, 0.007])

    Six agents after two rounds to both orders; exactly the mean is 0.5107 and the variance 0.0339:

    >>> policy = meanfield.make_policy(np.array([0.6, 0.9, 0.5, 0.4, 0.15]), ["A", "B"])
    >>> laws = [meanfield.finite_size(policy, n_agents=6, times=[4.0], order=order).sel(word="A") for order in (1, 2)]
    >>> [(round(law["mean"].item(), 4), round(law["variance"].item(), 4)) for law in laws]
    [(0.5097, 0.0332), (0.5106, 0.0341)]

    An epidemic in which half of the agents are ill: among N it is 1/2 - 1/(2N) on average, with the variance 1/(2N):

    >>> infect, recover = np.array([[0.0, 1], [0, 1]]), np.array([[0.0, 0], [0.5, 0]])
    >>> model = meanfield.ReactionModel(["S", "I"], [[1, 0]], [[0, 1]], [infect], None, recover)
    >>> law = meanfield.finite_size(model, times=[80.0], initial=np.array([0.5, 0.5])).sel(state="I", time=80)
    >>> law["composition_correction"].round(3).item(), law["composition_variance"].round(3).item()
    (-0.5, 0.5)
    """
    sizes = None if n_agents is None else validate_sizes(n_agents)
    order = whole_number("order", order, 1, 2)
    if isinstance(policy, ReactionModel):
        return _of_reactions(policy, sizes, times, initial, order, progress)
    if initial is not None:
        raise InputError("initial is given: expected only with a ReactionModel; agents of a policy begin with nothing")
    if order == 2 and isinstance(policy, Population) and policy.in_groups:
        raise InputError(f"order = 2 for {policy.name}, which meets in groups: expected 1")
    games = as_games(policy, in_groups=True)
    times = increasing_times(np.linspace(0.0, 60.0, 121) if times is None else times)
    (first, *others), space = games.mixtures, games.mixtures[0].space
    _check_order(order, first.q[..., 0].size)
    n_steps, step = _number_of_steps(times, first.pace, sizes, space.n_words, space.n_states), STEP / first.pace
    columns, shifts = [], []
    for number, mixture in enumerate(games.mixtures, 1):
        told = f"policy {number} of {len(games.mixtures)}" if others else "moments"
        numbers = np.moveaxis(mixture.q, -1, 0), space.n_words**2, times, n_steps, step, TIME_PER_ROUND, order
        (mean, *more), shift = _moments((*mixture,), mixture.empty, *numbers, told, progress)
        shifts.append(shift)
        columns.append(_columns("word", "word share", [mean + mixture.committed, *more], sizes))
    attractors = _attractors(policy, games, warned=sizes is not None)
    if sizes is not None:
        one = [";" not in found for found in attractors]
        shifts_of = dict(zip(compress(games.names, one), compress(shifts, one), strict=True))
        _warn_of_noise(sizes, shifts_of, "validation.simulate", stacklevel=3)
    result = games.labelled(columns, attractors=attractors).assign_coords(_coords(times, sizes, "half rounds"))
    result = result.assign_coords(round=("time", times / TIME_PER_ROUND, {"long_name": "population round"}))
    return games.stamped(result, "finite_size", order=order, step=step, neglected=NEGLECTED)


def _attractors(policy: xr.Dataset | Population, games: Games, warned: bool) -> list[str]:
    """The attractors of each game by name, or why they were not found; a warning of several if `warned`."""
    try:
        points = fixed_points(policy).transpose(*games.dims, "fixed_point", ...)
    except (InputError, ConvergenceError) as error:
        return [f"not found: {error}"] * len(games.mixtures)
    labels, stable = (
        points[name].values.reshape(-1, points.sizes["fixed_point"])[games.places or [0]]
        for name in ("label", "stable")
    )
    found = [one[which].tolist() for one, which in zip(labels, stable, strict=True)]
    several = [f"{name}: {' and '.join(one)}" for name, one in zip(games.names, found, strict=True) if len(one) > 1]
    if several and warned:
        more = f" (and {len(several) - 1} more policies)" if len(several) > 1 else ""
        warnings.warn(
            f"there are several attractors, {several[0]}{more}; mean and variance describe groups around one resting "
            "place, and groups of N agents may end at another: group_size_law tells which of two words wins, "
            "validation.simulate of more",
            stacklevel=3,
        )
    return ["; ".join(one) for one in found]


def _warn_of_noise(sizes: np.ndarray, shifts: dict[str, float], simulator: str, stacklevel: int) -> None:
    """A warning of the policy whose mean is corrected most, where some N are too small for linear noise."""
    name = max(shifts, key=lambda name: shifts[name], default="")
    small = np.sort(sizes)[np.sort(sizes) < (shifts.get(name, 0.0) / WEAK) ** 2]
    if len(small):
        told = ", ".join(f"{shifts[name] / n**0.5:.2g} at N = {n:,}" for n in small[:3])
        warnings.warn(
            f"{name} has strong noise: the correction of the mean in standard deviations is up to {told}, and groups "
            f"may spread several times wider than `variance` says; expected at most {WEAK}, as from N = "
            f"{np.ceil((shifts[name] / WEAK) ** 2):,.0f} on; {simulator} runs smaller groups",
            stacklevel=stacklevel,
        )


def _of_reactions(
    model: ReactionModel, sizes: np.ndarray | None, times: Any, initial: Any, order: int, progress: bool | None
) -> xr.Dataset:
    for name, argument in (("times", times), ("initial", initial)):
        if argument is None:
            raise InputError(f"{name} = None: a ReactionModel has no default")
    times, starts = increasing_times(times), initial_compositions(model, initial)
    if starts.ndim != 1:
        raise InputError(f"initial has dims {starts.dims}: expected state alone")
    _check_order(order, model.n_states)
    n_steps = _number_of_steps(times, model.fastest, sizes, model.n_states, model.n_states)
    # A model of constant rates without encounters has a source of rank 0
    n_tests = model.n_states if len(model.changes) else max(1, 4 * len(model.alpha))
    step, seen = STEP / model.fastest, np.eye(model.n_states)
    numbers = n_tests, times, n_steps, step, 0.0, order
    moments, shift = _moments(model.game, starts.values, seen, *numbers, "moments", progress)
    if sizes is not None:
        _warn_of_noise(sizes, {repr(model): shift}, "validation.reactions.simulate", stacklevel=4)
    columns = _columns("state", "composition", moments, sizes)
    result = labelled(columns, coords={**state_coords(model), **_coords(times, sizes, model.time_unit)})
    return stamp(result, "reaction_finite_size", order=order, step=step, neglected=NEGLECTED)


def _check_order(order: int, n_states: int) -> None:
    if order == 2 and n_states > MOST_STATES:
        raise InputError(f"order = 2 with {n_states} states of agents: expected at most {MOST_STATES}, or order = 1")


def _number_of_steps(times: np.ndarray, fastest: float, sizes: np.ndarray | None, seen: int, n_states: int) -> int:
    n_sizes = 0 if sizes is None else len(sizes)
    # As measured
    check_memory(
        16 * seen * len(times) * (n_sizes + 2), f"n_agents has {n_sizes} sizes and times {len(times)}", "fewer"
    )
    n_steps = max(SPLINE, int(np.ceil(times[-1] * fastest / STEP)))
    if n_steps * n_states > MAX_NUMBERS:
        most = MAX_NUMBERS // n_states * STEP / fastest
        raise InputError(f"times end at {times[-1]:g}: expected at most {most:g} for {n_states} states")
    return n_steps


def validate_sizes(n_agents: int | Sequence[int] | np.ndarray) -> np.ndarray:
    """Different population sizes of at least 2, as an array; InputError where `n_agents` is something else."""
    sizes = np.atleast_1d(np.asarray(n_agents))
    check_memory(BYTES_A_SIZE * sizes.size, f"n_agents has {sizes.size} sizes", "fewer of them")
    whole = sizes.ndim == 1 and len(sizes) > 0 and sizes.dtype.kind in "iu"
    if not whole or sizes.min() < 2 or len(np.unique(sizes)) < len(sizes):
        raise InputError(f"n_agents = {shown(n_agents)}: expected distinct whole numbers of at least 2")
    return sizes


@one_blas_thread()
def _moments(
    arrays: tuple[Any, ...],
    x: np.ndarray,
    seen: np.ndarray,
    n_tests: int,
    times: np.ndarray,
    n_steps: int,
    step: float,
    pause: float,
    order: int,
    told: str,
    progress: bool | None,
) -> tuple[list[np.ndarray], float]:
    """The observables of x and of V with their variances at these times, more at order 2, and how strong noise is."""
    tests = np.random.default_rng(0).standard_normal((min(n_tests, x.size), *x.shape))
    rows, weights = _at_start(x)
    path, variances, pushes = [], [], []
    y, hidden = x, None if progress is None else not progress
    with tqdm(desc=told, total=2 * (n_steps // BLOCK + 1), unit="block", disable=hidden, leave=False) as bar:
        while len(path) * BLOCK <= n_steps:
            numbers = (y, rows, weights, seen, tests, step, pause)
            *after, states, variance, push, lost = correlation_program(arrays, *numbers, n_steps=BLOCK)
            if lost.max() > NEGLECTED and len(weights) < x.size:
                rows, weights = _padded(rows, weights, 2 * len(weights))
                continue
            y, rows, weights = after
            for parts, part in ((path, states), (variances, variance), (pushes, push)):
                parts.append(part)
            bar.update()
        grid = step * np.arange(BLOCK * len(path))
        spline = make_interp_spline(grid, np.concatenate(pushes), k=SPLINE)
        y, v, corrections = x, np.zeros_like(x), [np.zeros((1, len(seen)))]
        for block in range(len(path)):
            within = spline(grid[block * BLOCK :][:BLOCK, None] + step * LOBATTO)
            y, v, correction = driven_program(arrays, y, v, within, seen, step)
            corrections.append(correction)
            bar.update()
    mean = np.tensordot(np.concatenate(path), seen, (range(1, 1 + x.ndim), range(1, 1 + x.ndim)))
    columns = (grid, mean, np.concatenate(corrections)[:-1], np.concatenate(variances))
    grid, mean, correction, variance = (column[: n_steps + 1] for column in columns)
    # The largest correction of a mean, in standard deviations, for N = 1; it falls with the root of N. A drift
    # -λy + ay² lets noise of the variance C shift the mean by aC/λ, while linear noise needs √C below λ/a
    shift = float((np.abs(correction) / np.sqrt(np.maximum(variance, KNOWN))).max())
    moments = [make_interp_spline(grid, column, k=SPLINE)(times) for column in (mean, correction, variance)]
    moments[2] = np.maximum(moments[2], 0.0)  # one below the accuracy may come out negative
    if order == 2:
        moments += _next_order(arrays, x, seen, times, pause, hidden)
    return moments, shift


def _at_start(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """xxᵀ - diag(x), in factors: nothing is uncertain yet."""
    (occupied,) = np.nonzero(x.ravel())
    if len(occupied) > MOST_RANK:
        raise InputError(f"initial has agents in {len(occupied)} states: expected at most {MOST_RANK}")
    some = x.ravel()[occupied]
    weights, vectors = np.linalg.eigh(np.outer(some, some) - np.diag(some))
    rows = np.zeros((len(occupied), x.size))
    rows[:, occupied] = vectors.T
    return _padded(rows.reshape(-1, *x.shape), weights, max(RANK, len(weights)))


def _padded(rows: np.ndarray, weights: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """The same factors with further rows of no weight, at most as many as there are states."""
    missing = min(rank, rows[0].size) - len(weights)
    return np.pad(rows, ((0, missing), *[(0, 0)] * (rows.ndim - 1))), np.pad(weights, (0, missing))


def _next_order(
    arrays: tuple[Any, ...], x: np.ndarray, seen: np.ndarray, times: np.ndarray, pause: float, hidden: bool | None
) -> list[np.ndarray]:
    """The parts of mean and variance in order 1/N² at these times, each (times, observables)."""
    n = x.size
    seen = seen.reshape(len(seen), n)
    now = (x.ravel(), np.zeros(n), np.zeros((n, n)), np.zeros(n), np.zeros((n, n)), np.zeros((n, n, n)))
    corrections, variances = [], []
    for interval in tqdm(np.diff(times, prepend=0.0), desc="order 2", unit="time", disable=hidden, leave=False):
        if interval > 0:
            now = cumulants_later(arrays, now, interval, pause)
        _, _, _, correction, covariance, _ = now
        corrections.append(seen @ correction)
        variances.append(np.einsum("oi,ij,oj->o", seen, covariance, seen))
    return [np.array(corrections), np.array(variances)]


def _columns(dim: str, name: str, moments: list[np.ndarray], sizes: np.ndarray | None) -> Columns:
    what, (mean, correction, variance, *more) = name.replace(" ", "_"), moments
    over = ("time", dim)
    columns = {
        what: (over, mean, f"{name} of the rate equation"),
        f"{what}_correction": (over, correction, f"N (mean {name} - {name}), for large N"),
        f"{what}_variance": (over, variance, f"N times the variance of the {name}, for large N"),
    }
    for part, moment in zip(("correction", "variance"), more, strict=False):
        columns[f"{what}_{part}_2"] = (over, moment, f"{part} of the {name} in order 1/N², times N²")
    if sizes is not None:
        N = sizes[:, None, None].astype(np.float64)  # whose square does not overflow
        next_mean, next_variance = more or (0.0, 0.0)
        columns["mean"] = (("n_agents", *over), mean + correction / N + next_mean / N**2, f"mean {name} among N agents")
        columns["variance"] = (
            ("n_agents", *over),
            variance / N + next_variance / N**2,
            f"variance of the {name} among N agents",
        )
    return columns


def _coords(times: np.ndarray, sizes: np.ndarray | None, unit: str) -> dict[str, Any]:
    coords: dict[str, Any] = {"time": ("time", times, {"long_name": "time", "units": unit})}
    if sizes is not None:
        coords["n_agents"] = ("n_agents", sizes, {"long_name": "number of agents"})
    return coords
