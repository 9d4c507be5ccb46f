"""A smooth surrogate of the finite-agent simulator, with derivatives in all parameters.

It differs from [002] Appendix E in three ways, each of which makes it differentiable:

- All agents listen at once, 16 times, instead of 16 times on average.
- A message ±1 becomes a normal number with the mean and variance of the other agents' messages.
- The last message is not drawn: given all before it, agents vote for the truth independently with known
  probabilities. The number of votes is taken as normal, with a continuity correction.

Fields are exact: the mixture's quantiles at fixed uniform numbers. For Appendix E at N = 4 to 128 the largest error of
an endpoint's probability is 0.05 to 0.16, depending on the draws (eight seeds).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from meanfield import InputError
from theory.flag_game.mechanism1._endpoints import vote_bands
from theory.flag_game.mechanism1._parameters import PARAMETERS, component_weights
from theory.flag_game.mechanism1._smooth_agents import CUBIC, LANES, LEAST_WIDTH, SHARPNESS, play_smoothly

SLOTS = 2**14  # agents drawn for each N
GRID = 257  # values of h between which the mixture's quantiles are interpolated
REACH = 5.0  # standard deviations of the components that the grid covers
LEAST_PROBABILITY = 1e-5
LARGEST_DRAWS = 2**30  # bytes
RULES = slice(PARAMETERS.index("J"), PARAMETERS.index("J") + 3)
LEAST_LEVEL = 1e-15  # between two values of h
STEP = 1e-6  # of coordinates, for the derivatives of the mixture's distribution function


class Draws(NamedTuple):
    """Random numbers for populations of one size, the same for all parameters."""

    n_agents: int
    populations: int
    uniform: np.ndarray  # (blocks, N, LANES), for the fields; the lanes after the last population are idle
    normal: np.ndarray  # (blocks, rounds - 1, N, LANES), for all messages but the last
    thresholds: np.ndarray  # (4,) numbers of votes at which classes begin


def make_draws(sizes: tuple[int, ...], rounds: int, seed: int, agents: int = SLOTS) -> tuple[Draws, ...]:
    """Draws for `agents` agents, or a few more, at each N.

    Half of the populations mirror the draws of the other half, which reduces the variance.
    """
    slots = max(sizes)
    half = (len(sizes), max(1, agents // (2 * slots)), slots)
    if (needed := 8 * 2 * np.prod(half, dtype=float) * max(rounds, 1)) > LARGEST_DRAWS:
        raise InputError(
            f"N = {slots}: the fit would need {needed / 2**30:.1f} GiB for {rounds} rounds of messages; "
            f"expected sizes and rounds for which it needs at most {LARGEST_DRAWS / 2**30:g} GiB"
        )
    rng = np.random.default_rng(seed)
    uniform, normal = rng.random(half), rng.standard_normal((max(rounds, 1) - 1, *half))
    uniform = np.concatenate([uniform, 1 - uniform], axis=1)
    normal = np.concatenate([normal, -normal], axis=2)
    return tuple(
        Draws(n, uniform.shape[1] * (slots // n), _blocks(uniform[k], n), _blocks(normal[:, k], n), _thresholds(n))
        for k, n in enumerate(sizes)
    )


def _blocks(numbers: np.ndarray, n: int) -> np.ndarray:
    """(…, rows, slots) as (blocks, …, n, LANES); a row holds as many populations as fit."""
    *before, rows, slots = numbers.shape
    each = numbers[..., : slots // n * n].reshape(*before, rows * (slots // n), n)
    idle = -each.shape[-2] % LANES
    each = np.concatenate([each, np.repeat(each[..., :1, :], idle, axis=-2)], axis=-2)
    blocks = each.reshape(*before, -1, LANES, n).swapaxes(-1, -2)
    return np.ascontiguousarray(np.moveaxis(blocks, len(before), 0))


def _thresholds(n: int) -> np.ndarray:
    consensus, polar_low, polar_high = vote_bands(n)
    return np.array([n - consensus + 1, consensus, polar_low, polar_high + 1], dtype=float)


def surrogate_moments(
    theta_at: Callable[[np.ndarray], np.ndarray], point: np.ndarray, draws: tuple[Draws, ...], slopes: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of the four endpoints and mean share of votes for the truth (K, 5), and their derivatives.

    Parameters
    ----------
    theta_at
        The values of PARAMETERS (14,) at coordinates (P,).
    point
        The coordinates.
    slopes
        Whether to compute the Jacobian (K, 5, P); otherwise it is (K, 5, 0).
    """
    sizes = np.array([one.n_agents for one in draws], dtype=float)
    here, levels = _tables(theta_at(point), sizes)
    steps = STEP * np.eye(len(point)) if slopes else np.empty((0, len(point)))
    ways = [
        (_tables(theta_at(point + s), sizes)[0] - _tables(theta_at(point - s), sizes)[0]) / (2 * STEP) for s in steps
    ]
    tables = np.stack([here, *ways], axis=1)
    found = np.empty((len(sizes), 1 + len(steps), 5))
    for one, table, level, mean in zip(draws, tables, levels, found, strict=True):
        # Contiguous, or numba compiles the same code twice.
        offsets, gains, rules = map(np.ascontiguousarray, np.split(table, [GRID - 1, 2 * (GRID - 1)], axis=1))
        sums = np.empty((len(one.uniform), *mean.shape))
        play_smoothly(one.uniform, one.normal, one.populations, level, offsets, gains, rules, one.thresholds, sums)
        mean[:] = sums.sum(axis=0) / one.populations
    wrong, not_right, low, high, share = np.moveaxis(found, -1, 0)
    one = np.r_[1.0, np.zeros(len(steps))]
    polar = high - low
    result = np.stack([one - not_right, wrong, polar, not_right - wrong - polar, share], axis=1)
    return result[..., 0], result[..., 1:]


def _tables(theta: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles as a + bu between levels u: all a, all b, J, β, α, (K, 2 GRID + 1); and the levels (K, GRID)."""
    weights = component_weights(theta[:5], sizes)
    means, sds = theta[5:11:2], theta[6:11:2] + LEAST_WIDTH
    low, high = np.min(means - REACH * sds), np.max(means + REACH * sds)
    grid = low + (high - low) * np.linspace(0, 1, GRID)
    levels = weights @ _cdf((grid - means[:, None]) / sds[:, None])
    levels = (levels - levels[:, :1]) / (levels[:, -1:] - levels[:, :1])
    slopes = np.diff(grid) / np.maximum(np.diff(levels), LEAST_LEVEL)
    rules = np.broadcast_to(theta[RULES], (len(sizes), 3))
    return np.concatenate([grid[:-1] - slopes * levels[:, :-1], slopes, rules], axis=1), levels


def _cdf(x: np.ndarray) -> np.ndarray:
    """The first value of `smooth_cdf`."""
    return 0.5 * (1 + np.tanh(SHARPNESS * (x + CUBIC * x**3)))
