"""Compositions to start from: the fraction of agents in each memory state."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import xarray as xr

from meanfield._population.policy_schema import validate_policy
from meanfield._population.population import Population, as_population
from meanfield._population.reaction_model import ReactionModel
from meanfield._population.single_policy import space_of, word_index
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._labels import values_in_order


def empty_memories(policy: xr.Dataset | Population) -> xr.DataArray:
    """The composition in which no agent has interacted yet, dims (state); for a population (component, state).

    Examples
    --------
    >>> policy = meanfield.datasets.smollm2().sel(pair="his/her")
    >>> said = meanfield.empty_memories(policy) @ policy["q"]
    >>> said.values.round(3)  # of his and her, in the first interaction
    array([0.523, 0.477])
    """
    return _all_in(0, policy)


def consensus(policy: xr.Dataset | Population, word: str) -> xr.DataArray:
    """The composition [π]^2H: every agent has said and heard only `word` in its last H interactions.

    Dims (state), for a population (component, state).

    Raises
    ------
    InputError
        If the policy does not have the word.

    See Also
    --------
    empty_memories : the usual initial composition

    Examples
    --------
    >>> policy = meanfield.datasets.smollm2().sel(pair="his/her")
    >>> said = meanfield.consensus(policy, "her") @ policy["q"]
    >>> said.values.round(3)  # of 'his' and 'her': one agent in six breaks the convention in its next interaction
    array([0.158, 0.842])
    """
    population = as_population(policy)
    return _all_in(population.space.consensus_state(word_index(population.policies[0], word)), policy)


def validate_composition(
    composition: xr.DataArray | np.ndarray, population: Population | ReactionModel, name: str = "composition"
) -> np.ndarray:
    """`composition` as an array; InputError, with the `name` of the argument, unless each row sums to 1 within 1e-6.

    Of a population the result has shape (M, S); a composition of shape (S,) then holds for each of the M kinds of
    agents. A DataArray has the dims `state` and, for a population, `component`, and is aligned by its coordinates.
    """
    if isinstance(population, ReactionModel):
        shape, labels = (population.n_states,), {"state": population.names}
    else:
        shape = (len(population.policies), population.space.n_states)
        labels = {"component": range(shape[0]), "state": range(shape[1])}
    return fractions_in_order(composition, shape, labels, name)


def fractions_in_order(
    composition: xr.DataArray | np.ndarray,
    shape: tuple[int, ...],
    labels: Mapping[str, Sequence[Hashable]],
    name: str = "composition",
) -> np.ndarray:
    """`composition` of this shape and these labels as an array; InputError unless rows lie on the simplex."""
    x = values_in_order(composition, labels, name)
    if x.shape not in (shape, shape[-1:]):
        expected = f"({shape[-1]},)" if shape[0] in (1, shape[-1]) else f"{shape} or ({shape[-1]},)"
        raise InputError(f"{name} has shape {x.shape}: expected {expected}")
    validate_fractions(x, name)
    return np.array(np.broadcast_to(x, shape))


def validate_fractions(x: np.ndarray, name: str) -> None:
    """InputError unless every row of `x`, states on the last axis, lies on the simplex to 1e-6."""
    sums = x.sum(-1)
    wrong = ~(np.isfinite(sums) & (x.min(-1) >= -1e-6) & (np.abs(sums - 1) <= 1e-6))
    if wrong.any():
        first = tuple(np.argwhere(wrong)[0])
        raise InputError(
            f"{name} sums to {sums[first]} with minimum {x[first].min()}: expected fractions that sum to 1"
        )


def _all_in(state: int, policy: xr.Dataset | Population) -> xr.DataArray:
    alone = not isinstance(policy, Population)
    space = space_of(validate_policy(policy)) if alone else policy.space
    x = np.zeros(space.n_states if alone else (len(policy.policies), space.n_states))
    x[..., state] = 1.0
    dims = ("state",) if alone else ("component", "state")
    return xr.DataArray(x, dims=dims, coords={"state": np.arange(space.n_states)}, name="composition")
