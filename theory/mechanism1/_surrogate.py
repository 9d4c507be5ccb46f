"""A smooth stand-in for the finite-agent simulator, with gradients in all parameters.

It differs from [002] Appendix E in three ways, each of which makes it differentiable:

- All agents listen at once, 16 times, instead of 16 times on average.
- A message ±1 is replaced by a normal number of the same mean, that of what the others say, and the same variance.
- The last message is not drawn: given all before it, agents vote for the truth independently with known
  probabilities, and the number of votes is taken as normal, with the correction for continuity.

Fields are exact: the mixture's quantiles at fixed uniform numbers. For Appendix E at N = 4 to 128
the largest error of an endpoint's probability is 0.05 to 0.16, as the draws have it (eight seeds).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from meanfield import InputError, iterate
from theory.mechanism1._endpoints import vote_bands
from theory.mechanism1._parameters import PARAMETERS, component_weights

Array = Any  # a NumPy array or a JAX tracer

SLOTS = 2**14  # agents drawn for each N
GRID = 257  # values of h between which the mixture's quantiles are interpolated
REACH = 5.0  # standard deviations of the components that the grid covers
LEAST_WIDTH = 1e-3  # keeps quantiles and probabilities smooth where a width goes to zero
LEAST_PROBABILITY = 1e-5
LARGEST_MATRICES = 2**30  # bytes
FIRST_RULE = PARAMETERS.index("J")


class Draws(NamedTuple):
    """What stays the same whatever the parameters, for K population sizes.

    A row has as many slots as the largest population has agents, S, and holds as many populations of a smaller size as
    fit in. So one computation, compiled once, does for all sizes, with more runs for the small ones, which differ more.
    """

    n_agents: np.ndarray  # (K,)
    uniform: np.ndarray  # (K, rows, S), for the fields
    normal: np.ndarray  # (rounds - 1, K, rows, S), for all messages but the last
    others: np.ndarray  # (K, S, S), 1/(N - 1) for two different agents of one population
    groups: np.ndarray  # (K, S, G), 1 for the agents of a population
    counted: np.ndarray  # (K, 1, G), weight of a population in the mean over runs; 0 for those that don't exist
    bands: np.ndarray  # (3, K, 1, 1), as VoteBands


def make_draws(sizes: tuple[int, ...], rounds: int, seed: int) -> Draws:
    """Draws for each N; those of half of the rows mirror those of the other half, which evens out their luck."""
    slots = max(sizes)
    if (needed := 8 * len(sizes) * slots**2) > LARGEST_MATRICES:
        raise InputError(
            f"N = {slots}: the fit would need {needed / 2**30:.1f} GiB for who hears whom; "
            f"expected sizes for which it needs at most {LARGEST_MATRICES / 2**30:g} GiB"
        )
    rng = np.random.default_rng(seed)
    half = (len(sizes), max(1, SLOTS // (2 * slots)), slots)
    uniform, normal = rng.random(half), rng.standard_normal((max(rounds, 1) - 1, *half))
    groups = np.zeros((len(sizes), slots, slots // min(sizes)))
    for k, n in enumerate(sizes):
        for g in range(slots // n):
            groups[k, g * n : (g + 1) * n, g] = 1
    members = groups.sum(axis=1, keepdims=True)
    together = groups @ groups.transpose(0, 2, 1) * (1 - np.eye(slots))
    n_agents = np.array(sizes, dtype=float)
    return Draws(
        n_agents,
        np.concatenate([uniform, 1 - uniform], axis=1),
        np.concatenate([normal, -normal], axis=2),
        together / (n_agents - 1)[:, None, None],
        groups,
        (members > 0) / (members > 0).sum(axis=2, keepdims=True),
        np.array([vote_bands(n) for n in sizes], dtype=float).T[:, :, None, None],
    )


def surrogate_moments(theta: Array, draws: Draws) -> Array:
    """Probabilities of the four endpoints and mean share of votes for the truth, shape (K, 5); theta as PARAMETERS."""
    xp = theta.__array_namespace__()
    J, beta, alpha = theta[FIRST_RULE], theta[FIRST_RULE + 1], theta[FIRST_RULE + 2]
    h = _quantiles(theta, draws)

    def heard(belief: Array) -> Array:
        """What the others say on average, and how much that varies."""
        mean = xp.matmul(xp.tanh(beta * belief), draws.others)
        return mean, xp.sqrt(1 - mean**2 + LEAST_WIDTH**2)

    def listen(belief: Array, z: Array) -> Array:
        mean, spread = heard(belief)
        return belief + alpha * (h + J * (mean + spread * z) - belief)

    belief = iterate(listen, h, draws.normal)
    mean, spread = heard(belief)
    last = belief + alpha * (h + J * mean - belief)
    # Where the last message hardly counts, with J or α near 0, votes are all but decided before it.
    return _moments(normal_cdf(last / (alpha * J * spread + LEAST_WIDTH)), draws)


def _quantiles(theta: Array, draws: Draws) -> Array:
    """Fields (K, rows, S) at which the mixture's distribution function has the values `uniform`."""
    xp = theta.__array_namespace__()
    weights = component_weights(theta[:5], draws.n_agents)
    means, sds = theta[5:11:2], theta[6:11:2] + LEAST_WIDTH
    low, high = xp.min(means - REACH * sds), xp.max(means + REACH * sds)
    grid = low + (high - low) * np.linspace(0, 1, GRID)
    levels = xp.matmul(weights, normal_cdf((grid - means[:, None]) / sds[:, None]))
    levels = (levels - levels[:, :1]) / (levels[:, -1:] - levels[:, :1])
    # One interpolation for all sizes: each has its own unit interval.
    number = np.arange(len(draws.n_agents))
    return xp.interp(
        draws.uniform + number[:, None, None], (levels + number[:, None]).ravel(), xp.tile(grid, len(number))
    )


def _moments(votes: Array, draws: Draws) -> Array:
    """From the probabilities (K, rows, S) with which agents vote for the truth."""
    xp = votes.__array_namespace__()
    n_agents = draws.n_agents[:, None, None]
    mean = xp.matmul(votes, draws.groups)
    width = xp.sqrt(xp.matmul(votes * (1 - votes), draws.groups) + LEAST_WIDTH)
    consensus, polar_low, polar_high = draws.bands

    def averaged(values: Array) -> Array:
        return xp.mean(xp.sum(values * draws.counted, axis=2), axis=1)

    def below(number: Array) -> Array:
        """Fraction of runs with fewer votes than `number`."""
        return averaged(normal_cdf((number - 0.5 - mean) / width))

    wrong, right = below(n_agents - consensus + 1), 1 - below(consensus)
    polar = below(polar_high + 1) - below(polar_low)
    return xp.stack([right, wrong, polar, 1 - right - wrong - polar, averaged(mean / n_agents)], axis=1)


def normal_cdf(x: Array) -> Array:
    """Φ(x) to 2e-4, in functions that every array namespace has. Source: Page 1977, Applied Statistics 26, 75."""
    return 0.5 * (1 + x.__array_namespace__().tanh(0.7978845608 * (x + 0.044715 * x**3)))
