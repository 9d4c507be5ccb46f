"""Endpoints of runs: the classes of [002] §2.3 for a population that votes for the truth or for one rival."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.toolbox import check_memory, whole_number

CORRECT, WRONG, POLARIZED, FRAGMENTED = ENDPOINTS = (
    "correct_consensus",
    "wrong_consensus",
    "polarization",
    "fragmentation",
)
CONSENSUS_PERCENT = 85
POLAR_PERCENT = 25


class VoteBands(NamedTuple):
    """The numbers of votes for the truth, among N, at which classes begin and end; exact, in whole votes."""

    consensus: int  # fewest votes of a consensus
    polar_low: int  # fewest and most votes for the truth in a polarised end
    polar_high: int


def vote_bands(n_agents: int) -> VoteBands:
    consensus = -(-CONSENSUS_PERCENT * n_agents // 100)
    polar = max(-(-POLAR_PERCENT * n_agents // 100), n_agents - consensus + 1)
    return VoteBands(consensus, polar, n_agents - polar)


def endpoints_of_votes(n_agents: int) -> np.ndarray:
    """The class of each number of votes for the truth, 0 to N, as its place in ENDPOINTS; shape (N + 1,).

    A consensus has at least 85 % of the votes. A run without one is polarised if both labels have at least 25 %, else
    fragmented: [002] §2.3.

    Parameters
    ----------
    n_agents
        N ≥ 2.

    Raises
    ------
    InputError
        If it is no number of agents, or too large for the memory.

    See Also
    --------
    read_counts : measured numbers of runs in these classes

    Examples
    --------
    >>> from theory.flag_game.mechanism1 import ENDPOINTS, endpoints_of_votes
    >>> [ENDPOINTS[place] for place in endpoints_of_votes(4)]
    ['wrong_consensus', 'polarization', 'polarization', 'polarization', 'correct_consensus']
    """
    n_agents = whole_number("n_agents", n_agents, 2)
    check_memory(16 * n_agents, f"n_agents = {n_agents}", "fewer agents")
    votes = np.arange(n_agents + 1)
    bands = vote_bands(n_agents)
    classes = np.full(n_agents + 1, ENDPOINTS.index(FRAGMENTED))
    classes[(votes >= bands.polar_low) & (votes <= bands.polar_high)] = ENDPOINTS.index(POLARIZED)
    classes[votes >= bands.consensus] = ENDPOINTS.index(CORRECT)
    classes[votes <= n_agents - bands.consensus] = ENDPOINTS.index(WRONG)
    return classes


def possible_endpoints(n_agents: int) -> np.ndarray:
    """Which classes some number of votes belongs to, shape (4,)."""
    return np.isin(np.arange(len(ENDPOINTS)), endpoints_of_votes(n_agents))


class VoteMoments(NamedTuple):
    """Moments of one run under a distribution of the number of votes."""

    endpoints: np.ndarray  # (4,), probabilities of the classes
    mean: float  # of the share of votes for the truth
    covariance: np.ndarray  # (5, 5), of the four indicators and that share


def vote_moments(law: np.ndarray) -> VoteMoments:
    """Moments under a distribution of the number of votes for the truth, shape (N + 1,), which sums to 1."""
    n_agents = len(law) - 1
    seen = np.zeros((n_agents + 1, 5))
    seen[np.arange(n_agents + 1), endpoints_of_votes(n_agents)] = 1
    seen[:, 4] = np.arange(n_agents + 1) / n_agents
    mean = law @ seen
    return VoteMoments(mean[:4], float(mean[4]), (seen.T * law) @ seen - np.outer(mean, mean))
