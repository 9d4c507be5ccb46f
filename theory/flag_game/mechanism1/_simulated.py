"""Moments of endpoints and accuracies from runs of the exact simulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from theory.flag_game.mechanism1._agents import votes_of
from theory.flag_game.mechanism1._endpoints import possible_endpoints, vote_moments
from theory.flag_game.mechanism1._likelihood import smoothed_endpoints
from theory.flag_game.mechanism1._parameters import Mechanism1


class Moments(NamedTuple):
    """Moments at K population sizes."""

    values: np.ndarray  # (K, 5): probabilities of the endpoints, mean share of votes for the truth
    covariances: np.ndarray  # (K, 5, 5): of one run's indicators of endpoints and its share of votes
    laws: tuple[np.ndarray, ...]  # of the number of votes for the truth, each (N + 1,)


def moments_of_laws(laws: list[np.ndarray], runs: float = np.inf) -> Moments:
    """Moments under distributions of the number of votes, each counted from `runs` runs (inf: exact distributions)."""
    each = [vote_moments(law) for law in laws]
    endpoints = np.stack([one.endpoints for one in each])
    if np.isfinite(runs):
        possible = np.stack([possible_endpoints(len(law) - 1) for law in laws])
        endpoints = smoothed_endpoints(endpoints * runs, possible)
    means = np.array([one.mean for one in each])
    return Moments(np.c_[endpoints, means], np.stack([one.covariance for one in each]), tuple(laws))


def simulated_moments(points: Sequence[Mechanism1], sizes: tuple[int, ...], runs: int, seed: int) -> list[Moments]:
    """Moments under each of the parameters, from `runs` runs at each N with the random numbers of `seed`."""
    laws: list[list[np.ndarray]] = [[] for _ in points]
    for n in sizes:
        for law, votes in zip(laws, votes_of(points, n, runs, seed), strict=True):
            law.append(np.bincount(votes, minlength=n + 1) / runs)
    return [moments_of_laws(law, runs) for law in laws]
