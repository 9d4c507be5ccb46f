"""Policies that heed the last interaction only, and exact distributions with a criterion for ensembles to follow."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.stats import chisquare

import meanfield
from meanfield import MemorySpace
from validation.naming_game import Convention, ExactPopulation
from validation.naming_game._convention import ROUNDS_AVERAGED

ALPHA = 1e-4
GENERIC_Q = np.array([0.6, 0.9, 0.35, 0.55, 0.15])  # of the memories empty, AA, AB, BA, BB; H = 1


def last_interaction_policy(
    q: np.ndarray, n_words: int = 2, memory_length: int = 1, empty: np.ndarray | None = None
) -> xr.Dataset:
    """The policy q[state of H = 1, word] for agents who remember more and heed the last interaction only."""
    space = MemorySpace(n_words, memory_length)
    states = np.arange(space.n_states)
    last = np.where(states == 0, 0, 1 + (states - 1) % space.n_digits)
    return meanfield.make_policy(q[last], list("ABC")[:n_words])


def two_words(first: np.ndarray) -> np.ndarray:
    return np.stack([first, 1 - first], axis=-1)


def chi_square_p(observed: np.ndarray, law: np.ndarray) -> float:
    """p of observed counts under a law, rare outcomes taken together."""
    expected = law * observed.sum()
    if observed[expected < 1e-9].any():
        return 0.0
    rare = expected < 10
    observed, expected = (np.append(v[~rare], v[rare].sum()) for v in (observed, expected))
    keep = expected > 1e-9
    if keep.sum() == 1:  # the law has one outcome, and it is the one observed
        return 1.0
    return chisquare(observed[keep], expected[keep] * observed.sum() / expected[keep].sum()).pvalue


def exact_consensus_round(exact: ExactPopulation, max_rounds: int, rule: Convention) -> np.ndarray:
    """P(a run converges in a round), rounds 0 to `max_rounds`.

    How many of the latest interactions failed is no function of the configuration. So the chain is extended by the
    failures of each round, counted up to the number that rules out consensus: 1 for [004] and N ≤ 16.
    """
    n = exact.n_agents
    too_many = ROUNDS_AVERAGED * n - rule.successes_needed(n) + 1
    succeeded = sum(np.ix_(*[np.arange(too_many + 1)] * ROUNDS_AVERAGED)) < too_many
    success = exact.success
    failure, converged = exact.transition - success, np.zeros(max_rounds + 1)
    before = np.zeros((too_many + 1, too_many + 1, len(exact.counts)))
    before[-1, -1, 0] = 1
    for played in range(1, max_rounds + 1):
        laws = np.zeros((*succeeded.shape, len(exact.counts)))
        laws[:, :, 0] = before
        for _ in range(n):
            failed, laws = ((laws.reshape(-1, laws.shape[-1]) @ p).reshape(laws.shape) for p in (failure, success))
            laws[:, :, 1:] += failed[:, :, :-1]
            laws[:, :, -1] += failed[:, :, -1]
        if played >= rule.first_test:
            converged[played] = laws[succeeded].sum()
            laws[succeeded] = 0.0
        before = laws.sum(0)
    return converged


def consensus_p(simulation: xr.Dataset, law: np.ndarray) -> float:
    """p of the consensus rounds of one size, under P(converged in round 0, 1, …); a round beyond counts as none."""
    rounds = simulation["consensus_round"].fillna(0).astype(int).values
    rounds = np.where(rounds < len(law), rounds, 0)
    return chi_square_p(np.bincount(rounds, minlength=len(law)), np.array([1 - law.sum(), *law[1:]]))
