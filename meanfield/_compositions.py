"""Compositions to start from: the fraction of agents in each memory state."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield._errors import InputError
from meanfield._memory import MemorySpace
from meanfield._policy import single_policy, space_of, word_index


def empty_memories(policy: xr.Dataset) -> xr.DataArray:
    """The composition in which nobody has interacted yet, dims (state)."""
    return _all_in(0, space_of(policy))


def consensus(policy: xr.Dataset, word: str) -> xr.DataArray:
    """The composition in which every agent has said and heard only `word` in its last H interactions, [π]^2H.

    Raises
    ------
    InputError
        If the policy does not have the word.
    """
    policy = single_policy(policy)
    space = space_of(policy)
    return _all_in(space.consensus_state(word_index(policy, word)), space)


def validate_composition(composition: xr.DataArray | np.ndarray, space: MemorySpace) -> np.ndarray:
    """`composition` as an array of shape (S,); InputError where it is not on the simplex to 1e-6."""
    x = np.asarray(composition, dtype=np.float64)
    if x.shape != (space.n_states,):
        raise InputError(f"composition has shape {x.shape}: expected ({space.n_states},)")
    if not (np.isfinite(x).all() and x.min() >= -1e-6 and abs(x.sum() - 1) <= 1e-6):
        raise InputError(f"composition sums to {x.sum()} with minimum {x.min()}: expected fractions that sum to 1")
    return x


def _all_in(state: int, space: MemorySpace) -> xr.DataArray:
    x = np.zeros(space.n_states)
    x[state] = 1.0
    return xr.DataArray(x, dims="state", coords={"state": np.arange(space.n_states)}, name="composition")
