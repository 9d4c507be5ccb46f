"""Climbs to the likeliest parameters, and the transfer of slopes from the surrogate to the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from theory.flag_game.mechanism1._coordinates import FARTHEST
from theory.flag_game.mechanism1._counts import EndpointCounts
from theory.flag_game.mechanism1._likelihood import log_likelihood, scoring_parts
from theory.flag_game.mechanism1._surrogate import LEAST_PROBABILITY

CLIMB_STEPS = 20
SMALL_GAIN = 2e-3  # in log-likelihood; two gains in a row below it end a climb
DAMPING = (1e-2, 1e7)  # first, and the one at which a climb gives up
FASTER, SLOWER = 0.2, 6.0  # times the damping after a step up, and after a step that failed

Evaluate = Callable[[list[np.ndarray]], Sequence[np.ndarray]]  # points (P,) to moments (K, 5)


class Summit(NamedTuple):
    """The end of a climb."""

    coordinates: np.ndarray
    moments: np.ndarray  # (K, 5)
    log_likelihood: float


def climb(
    moments_at: Evaluate,
    slopes_at: Callable[[np.ndarray, np.ndarray], np.ndarray],
    start: np.ndarray,
    measured: EndpointCounts,
    steps: int = CLIMB_STEPS,
    together: int = 1,
) -> Summit:
    """Damped Fisher scoring: up the log-likelihood of `moments_at` with the Jacobian `slopes_at(point, moments)`.

    Damping favours short steps, so directions that the data do not determine stay at their start. One call tries
    `together` steps; their number does not change the path.
    """

    def reached(points: list[np.ndarray]) -> list[Summit]:
        found = moments_at(points)
        return [
            Summit(at, moments, log_likelihood(moments, measured)) for at, moments in zip(points, found, strict=True)
        ]

    (here,) = reached([start])
    damping, small = DAMPING[0], 0
    for _ in range(steps):
        gradient, curvature = scoring_parts(here.moments, slopes_at(here.coordinates, here.moments), measured)
        there = here
        while there is here and damping < DAMPING[1]:
            tried = damping * SLOWER ** np.arange(together)
            moves = [np.linalg.solve(curvature + one * np.eye(len(start)), gradient) for one in tried]
            points = [np.clip(here.coordinates + move, start - FARTHEST, start + FARTHEST) for move in moves]
            found = reached(points)
            better = [one.log_likelihood > here.log_likelihood for one in found]
            if any(better):
                there, damping = found[better.index(True)], FASTER * tried[better.index(True)]
            else:
                damping = SLOWER * tried[-1]
        if there is here:
            break
        small = small + 1 if there.log_likelihood - here.log_likelihood < SMALL_GAIN else 0
        here = there
        if small == 2:
            break
    return here


def transferred(jacobian: np.ndarray, surrogate: np.ndarray, moments: np.ndarray, possible: np.ndarray) -> np.ndarray:
    """The surrogate's Jacobian (K, 5, P), carried over to other moments (K, 5) of the same parameters.

    Space mapping (Bandler et al. 1994, IEEE Trans. Microw. Theory Tech. 42, 2536) assumes that two quantities change
    little: the ratio of each endpoint's probability, before normalisation, to the surrogate's, and the difference of
    means.
    """
    relative = jacobian[:, :4] / np.maximum(surrogate[:, :4], LEAST_PROBABILITY)[..., None]
    relative = np.where(possible[..., None], relative, 0.0)
    mean = np.einsum("ki,kip->kp", moments[:, :4], relative)
    return np.concatenate([moments[:, :4, None] * (relative - mean[:, None]), jacobian[:, 4:]], axis=1)


def corrected(surrogate: np.ndarray, ratio: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """The surrogate's moments (K, 5) with endpoints times `ratio` (K, 4), normalised, and means plus `offset` (K,)."""
    xp = surrogate.__array_namespace__()
    raised = xp.maximum(surrogate[:, :4], LEAST_PROBABILITY) * ratio
    return xp.concat([raised / raised.sum(axis=1, keepdims=True), surrogate[:, 4:] + offset[:, None]], axis=1)
