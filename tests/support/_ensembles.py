"""Policies that heed the last interaction only, and tests of ensembles against exact laws."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.stats import chisquare

import meanfield
from meanfield import MemorySpace

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
    if observed[law == 0].any():
        return 0.0
    rare = expected < 10
    observed, expected = (np.append(v[~rare], v[rare].sum()) for v in (observed, expected))
    keep = expected > 0
    return chisquare(observed[keep], expected[keep] * observed.sum() / expected.sum()).pvalue


def share_p(simulation: xr.Dataset, n: int, played: int, law: dict[float, float]) -> float:
    shares = simulation["word_share"].sel(n_agents=n, round=played).isel(word=0).values.round(9)
    values = np.array(list(law))
    observed = np.isclose(shares[:, None], values, atol=1e-8).sum(0)
    assert observed.sum() == len(shares)
    return chi_square_p(observed, np.array(list(law.values())))
