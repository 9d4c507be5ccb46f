"""Checks of the arguments of a reaction model."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_array, eye_array, issparse

from meanfield.toolbox._errors import InputError, reason
from meanfield.toolbox._labels import real_numbers

ROUNDING = 1e-9  # by which probabilities that sum to 1 may miss it


def state_names(states: tuple[Hashable, ...]) -> tuple[str, ...]:
    """The labels as strings; InputError unless there are some and they differ."""
    if not states:
        raise InputError("states is empty: expected at least one label")
    for state in states:
        parts = state if isinstance(state, tuple) and state else (state,)
        if not all(isinstance(part, str) or (isinstance(part, int) and len(parts) > 1) for part in parts):
            raise InputError(f"states has {state!r}: expected strings, or tuples of strings and integers")
    names = tuple(state if isinstance(state, str) else ", ".join(map(str, state)) for state in states)
    repeated = [name for k, name in enumerate(names) if name in names[:k]]
    if repeated:
        raise InputError(f"states has {repeated[0]!r} more than once: expected distinct labels")
    return names


def probabilities(name: str, values: Any, n_states: int) -> Float[np.ndarray, "channels states"]:
    """Shape (M, K), from 0 to 1."""
    array = real_numbers(values, name)
    if array.ndim != 2 or array.shape[1] != n_states:
        raise InputError(f"{name} has shape {array.shape}: expected (channels, {n_states})")
    wrong = np.argwhere(~((array >= 0) & (array <= 1)))
    if len(wrong):
        m, i = wrong[0]
        raise InputError(f"{name}[{m}, {i}] = {array[m, i]}: expected a probability, 0 to 1")
    return array


def acting_pairs(alpha: np.ndarray, beta: np.ndarray, names: tuple[str, ...]) -> None:
    """InputError where the channels of a pair of states have a sum above 1."""
    if len(alpha) != len(beta):
        raise InputError(f"beta has {len(beta)} channels: expected {len(alpha)}, as alpha")
    # States that show the same need one look, which keeps this small for models of many states.
    (shown, i), (seen, j) = (np.unique(side.T, axis=0, return_index=True) for side in (alpha, beta))
    total = shown @ seen.T
    if total.size and total.max() > 1 + ROUNDING:
        worst = np.unravel_index(total.argmax(), total.shape)
        pair = f"({names[i[worst[0]]]!r}, {names[j[worst[1]]]!r})"
        raise InputError(f"alpha and beta: the channels of {pair} have the sum {total.max()}, expected at most 1")


def stochastic_matrices(name: str, matrices: Any, n_channels: int, names: tuple[str, ...]) -> tuple[csr_array, ...]:
    """M sparse row-stochastic matrices; None is the identity."""
    try:
        each = [None] * n_channels if matrices is None else list(matrices)
    except TypeError:
        raise InputError(f"{name} = {matrices!r}: expected {n_channels} matrices, one for each channel") from None
    if len(each) != n_channels:
        raise InputError(f"{name} has {len(each)} matrices: expected {n_channels}, one for each channel")
    stays = csr_array(eye_array(len(names)))
    return tuple(stays if one is None else _stochastic(f"{name}[{m}]", one, names) for m, one in enumerate(each))


def _stochastic(name: str, matrix: Any, names: tuple[str, ...]) -> csr_array:
    checked = _nonnegative(name, matrix, names)
    sums = checked @ np.ones(len(names))
    worst = int(np.abs(sums - 1).argmax())
    if abs(sums[worst] - 1) > ROUNDING:
        raise InputError(f"{name}: the row of {names[worst]!r} sums to {sums[worst]}, expected 1")
    return checked


def transition_rates(name: str, matrix: Any, names: tuple[str, ...]) -> csr_array:
    """Rates of moves between different states, sparse; None stands for no moves."""
    if matrix is None:
        return csr_array((len(names), len(names)), dtype=np.float64)
    checked = _nonnegative(name, matrix, names)
    staying = checked.diagonal()
    if staying.any():
        k = int(np.flatnonzero(staying)[0])
        raise InputError(f"{name} has {staying[k]} from {names[k]!r} to itself: expected 0 on the diagonal")
    return checked


def _nonnegative(name: str, matrix: Any, names: tuple[str, ...]) -> csr_array:
    try:
        checked = csr_array(matrix if issparse(matrix) else real_numbers(matrix, name), dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: expected a matrix of numbers ({reason(error)})") from None
    if checked.shape != (len(names), len(names)):
        raise InputError(f"{name} has shape {checked.shape}: expected {(len(names), len(names))}")
    checked.sum_duplicates()
    bad = checked.data[~((checked.data >= 0) & (checked.data < np.inf))]
    if bad.size:
        raise InputError(f"{name} has the entry {bad[0]}: expected finite entries of at least 0")
    checked.eliminate_zeros()
    return checked
