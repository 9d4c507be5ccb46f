"""Endpoints of runs: the classes of [002] §2.3 for a population that votes for the truth or for one rival.

Their probabilities and the mean share of votes for the truth are the moments to which Mechanism 1 is fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meanfield.toolbox import check_memory

ENDPOINTS = ("correct_consensus", "wrong_consensus", "polarization", "fragmentation")
CONSENSUS_PERCENT = 85
POLAR_PERCENT = 25
PSEUDO_COUNT = 0.5  # added to each possible class of a simulation, whose zeros would make log-likelihoods -inf


def endpoints_of_votes(n_agents: int) -> np.ndarray:
    """The endpoint of each number of votes for the truth, 0 to N, as an index of ENDPOINTS; shape (N + 1,).

    A consensus has at least 85 % of the votes. A run without one is polarised if both labels have at least 25 %, else
    fragmented.
    """
    check_memory(16 * n_agents, f"n_agents = {n_agents}", "fewer agents")
    truth = 100 * np.arange(n_agents + 1)
    rival, most, polar = truth[::-1], CONSENSUS_PERCENT * n_agents, POLAR_PERCENT * n_agents
    return np.select([truth >= most, rival >= most, np.minimum(truth, rival) >= polar], range(3), 3)


def possible_endpoints(n_agents: int) -> np.ndarray:
    """Which classes some number of votes belongs to, shape (4,)."""
    return np.bincount(endpoints_of_votes(n_agents), minlength=len(ENDPOINTS)) > 0


class Moments(NamedTuple):
    """Moments at K population sizes."""

    values: np.ndarray  # (K, 5): probabilities of the endpoints, mean share of votes for the truth
    covariances: np.ndarray  # (K, 5, 5): of one run's indicators of endpoints and its share of votes
    laws: tuple[np.ndarray, ...]  # of the number of votes for the truth, each (N + 1,)


def moments_of_laws(laws: Sequence[np.ndarray], runs: float = np.inf) -> Moments:
    """Moments under distributions of the number of votes, each counted from `runs` runs (inf: exact distributions)."""
    values, covariances = [], []
    for law in laws:
        n_agents = len(law) - 1
        indicators = endpoints_of_votes(n_agents)[:, None] == np.arange(len(ENDPOINTS))
        seen = np.c_[indicators, np.arange(n_agents + 1) / n_agents]
        mean = law @ seen
        covariances.append((seen.T * law) @ seen - np.outer(mean, mean))
        if np.isfinite(runs):
            raised = mean[:4] * runs + PSEUDO_COUNT * possible_endpoints(n_agents)
            mean[:4] = raised / raised.sum()
        values.append(mean)
    return Moments(np.array(values), np.array(covariances), tuple(laws))
