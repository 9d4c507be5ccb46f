"""The search for the likeliest parameters: by the surrogate's gradient from several starts, then on the simulator."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import optax

from meanfield import compiled, value_and_gradient, value_and_jacobian
from theory.mechanism1._coordinates import FARTHEST, Coordinates
from theory.mechanism1._counts import EndpointCounts
from theory.mechanism1._likelihood import log_likelihood, observations, scoring_parts, varying_part
from theory.mechanism1._surrogate import LEAST_PROBABILITY, Draws, surrogate_moments

SEARCH_STEPS = 60
FIRST_STEP = 0.1  # of the search, in coordinates; it falls to 0 along a cosine
CLIMB_STEPS = 20
SMALL_GAIN = 2e-3  # in log-likelihood; two gains in a row below it end a climb
DAMPING = (1e-2, 1e7)  # first, and the one at which a climb gives up

Evaluate = Callable[[np.ndarray], np.ndarray]


class Summit(NamedTuple):
    """Where a climb ends."""

    coordinates: np.ndarray
    moments: np.ndarray  # (K, 5)
    log_likelihood: float


@lru_cache(maxsize=16)
def surrogate_likelihood(coordinates: Coordinates) -> Callable:
    """(log-likelihood up to a constant, gradient) of (point, draws, *observations), compiled once for each shape."""

    def negative(point: np.ndarray, draws: Draws, *observed: np.ndarray) -> np.ndarray:
        return -varying_part(surrogate_moments(coordinates.theta(point), draws), *observed)

    return value_and_gradient(negative)


@lru_cache(maxsize=16)
def surrogate_jacobian(coordinates: Coordinates) -> Callable:
    """(moments (K, 5), Jacobian (K, 5, free)) of (point, draws), compiled once for each shape."""
    return value_and_jacobian(lambda point, draws: surrogate_moments(coordinates.theta(point), draws))


@lru_cache(maxsize=16)
def surrogate_values(coordinates: Coordinates) -> Callable:
    """Moments (K, 5) of (point, draws), compiled once for each shape."""
    return compiled(lambda point, draws: surrogate_moments(coordinates.theta(point), draws))


def search(coordinates: Coordinates, start: np.ndarray, measured: EndpointCounts, draws: Draws) -> Summit:
    """The best point that Adam (Kingma and Ba 2015) meets on the surrogate's log-likelihood."""
    evaluate = surrogate_likelihood(coordinates)
    observed = observations(measured)
    optimiser = optax.adam(optax.cosine_decay_schedule(FIRST_STEP, SEARCH_STEPS))
    point, state = start, optimiser.init(start)
    best, lowest = start, np.inf
    for _ in range(SEARCH_STEPS):
        value, gradient = evaluate(point, draws, *observed)
        if not np.isfinite(value) or not np.isfinite(gradient).all():
            break
        if value < lowest:
            best, lowest = point, value
        update, state = optimiser.update(gradient, state, point)
        point = np.clip(np.asarray(optax.apply_updates(point, update)), start - FARTHEST, start + FARTHEST)
    return Summit(best, np.empty(0), -lowest)


def climb(
    moments_at: Evaluate,
    slopes_at: Callable[[np.ndarray, np.ndarray], np.ndarray],
    start: np.ndarray,
    measured: EndpointCounts,
    steps: int = CLIMB_STEPS,
) -> Summit:
    """Damped Fisher scoring: up the log-likelihood of `moments_at` with the Jacobian `slopes_at(point, moments)`.

    Directions about which the data say nothing stay where they started, since damping favours short steps.
    """
    here = Summit(start, *_valued(moments_at(start), measured))
    damping, small = DAMPING[0], 0
    for _ in range(steps):
        gradient, curvature = scoring_parts(here.moments, slopes_at(here.coordinates, here.moments), measured)
        gain = -np.inf
        while gain <= 0 and damping < DAMPING[1]:
            step = np.linalg.solve(curvature + damping * np.eye(len(start)), gradient)
            point = np.clip(here.coordinates + step, start - FARTHEST, start + FARTHEST)
            there = Summit(point, *_valued(moments_at(point), measured))
            gain = there.log_likelihood - here.log_likelihood
            damping *= 0.2 if gain > 0 else 6
        if gain <= 0:
            break
        here = there
        small = small + 1 if gain < SMALL_GAIN else 0
        if small == 2:
            break
    return here


def _valued(moments: np.ndarray, measured: EndpointCounts) -> tuple[np.ndarray, float]:
    return moments, log_likelihood(moments, measured)


def transferred(jacobian: np.ndarray, surrogate: np.ndarray, moments: np.ndarray, possible: np.ndarray) -> np.ndarray:
    """The surrogate's Jacobian (K, 5, P), carried over to other moments (K, 5) of the same parameters.

    Space mapping (Bandler et al. 1994, IEEE Trans. Microw. Theory Tech. 42, 2536): the ratio of each endpoint's
    probability to the surrogate's is taken to change little, before all are normalised; so is the difference of means.
    """
    relative = jacobian[:, :4] / np.maximum(surrogate[:, :4], LEAST_PROBABILITY)[..., None]
    relative = np.where(possible[..., None], relative, 0.0)
    mean = np.einsum("ki,kip->kp", moments[:, :4], relative)
    return np.concatenate([moments[:, :4, None] * (relative - mean[:, None]), jacobian[:, 4:]], axis=1)


def corrected(surrogate: np.ndarray, ratio: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """The surrogate's moments (K, 5) with endpoints times `ratio` (K, 4), normalised, and means plus `offset` (K,)."""
    raised = np.maximum(surrogate[:, :4], LEAST_PROBABILITY) * ratio
    return np.c_[raised / raised.sum(axis=1, keepdims=True), surrogate[:, 4] + offset]
