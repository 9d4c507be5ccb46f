"""Policies near a common one: one sharpness and one bias for each unit, a run or a period of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

STEPS = 12  # of Newton's method, each followed by one for the spreads
LARGEST_STEP = 0.5
LEAST_SPREAD = 1e-3
FIRST_SPREAD = 0.2
MOST_COUNTED = 20  # possible keys for each that is given


def numbered(keys: np.ndarray) -> tuple[np.ndarray, int]:
    """The rank of each of some whole numbers ≥ 0 among those that occur, and how many occur."""
    if keys.max(initial=0) > MOST_COUNTED * (1 + len(keys)):
        different, ranks = np.unique(keys, return_inverse=True)
        return ranks, len(different)
    # Ten times faster than to sort
    occurs = np.bincount(keys) > 0
    return (np.cumsum(occurs) - 1)[keys], int(occurs.sum())


class Cells(NamedTuple):
    """Choices by unit and memory state: those of a cell have the same probabilities. Words come first: W is small."""

    unit: np.ndarray  # (cell,)
    state: np.ndarray  # (cell,)
    of: np.ndarray  # (choice,), the cell of each choice
    counts: np.ndarray  # (word, cell)

    @classmethod
    def group(cls, unit: np.ndarray, state: np.ndarray, chosen: np.ndarray, n_words: int) -> Cells:
        """Cells of choices with this unit, state and word (choice,)."""
        most = int(state.max()) + 1
        keys = unit * most + state
        of, n_cells = numbered(keys)
        cells = np.empty(n_cells, dtype=np.int64)
        cells[of] = keys
        counts = np.bincount(chosen * n_cells + of, minlength=n_cells * n_words).reshape(n_words, -1)
        return cls(*np.divmod(cells, most), of, counts)


class Tilts(NamedTuple):
    """Policies ∝ q^sharpness e^bias of each unit."""

    sharpness: np.ndarray  # (unit,)
    bias: np.ndarray  # (unit, word)

    @classmethod
    def none(cls, units: int, n_words: int) -> Tilts:
        """One policy for all."""
        return cls(np.ones(units), np.zeros((units, n_words)))

    def probabilities(self, unit: np.ndarray, log_q: np.ndarray) -> np.ndarray:
        """(word, cell), of cells of these units (cell,) with log q (word, cell)."""
        logs = self.sharpness[unit] * log_q + self.bias.T[:, unit]
        p = np.exp(logs - logs.max(0))
        return p / p.sum(0)


def fit_tilts(log_q: np.ndarray, cells: Cells, units: int) -> Tilts:
    """The most probable tilts of q (state, word), as random effects around it.

    Sharpness is normal around 1 and biases are normal around 0; their spreads maximise the marginal likelihood in
    Laplace's approximation (EM). Units with few choices stay near the common policy.
    """
    n_words = log_q.shape[1]
    # One column a parameter: the bias of each word, then the sharpness.
    values = np.zeros((units, n_words + 1))
    spreads = np.full(n_words + 1, FIRST_SPREAD)
    logs = log_q[cells.state].T.copy()
    for _ in range(STEPS):
        p = Tilts(1 + values[:, -1], values[:, :-1]).probabilities(cells.unit, logs)
        slope, curvature = _derivatives(cells, p, logs, units)
        curvature += np.diag(1 / spreads**2)
        step = np.linalg.solve(curvature, (slope - values / spreads**2)[:, :, None])[:, :, 0]
        values = values + np.clip(step, -LARGEST_STEP, LARGEST_STEP)
        uncertain = np.diagonal(np.linalg.inv(curvature), axis1=1, axis2=2)
        second = (values**2 + uncertain).mean(0)
        second[:-1] = second[:-1].mean()
        spreads = np.maximum(np.sqrt(second), LEAST_SPREAD)
    return Tilts(1 + values[:, -1], values[:, :-1])


def _derivatives(cells: Cells, p: np.ndarray, log_q: np.ndarray, units: int) -> tuple[np.ndarray, np.ndarray]:
    """Gradient (unit, parameter) and minus the Hessian (unit, parameter, parameter) of the log-likelihood."""
    n_words, total = len(p), cells.counts.sum(0)

    def summed(values: np.ndarray) -> np.ndarray:
        return np.bincount(cells.unit, values, minlength=units)

    expected = total * p
    left = cells.counts - expected
    slope = np.empty((units, n_words + 1))
    curvature = np.empty((units, n_words + 1, n_words + 1))
    centred = log_q - (p * log_q).sum(0)
    for word in range(n_words):
        slope[:, word] = summed(left[word])
        for other in range(word + 1):
            both = expected[word] * ((1 if word == other else 0) - p[other])
            curvature[:, word, other] = curvature[:, other, word] = summed(both)
        curvature[:, word, -1] = curvature[:, -1, word] = summed(expected[word] * centred[word])
    slope[:, -1] = summed((left * log_q).sum(0))
    curvature[:, -1, -1] = summed((expected * centred**2).sum(0))
    return slope, curvature
