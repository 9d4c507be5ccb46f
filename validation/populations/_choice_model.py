"""Choices whose log-probabilities are linear in parameters, and policies near a common one: one tilt for each unit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import softmax

STEPS = 12  # of Newton's method, each followed by one for the spreads
LARGEST_STEP = 0.5
LEAST_SPREAD = 1e-3
FIRST_SPREAD = 0.2


def sparse_design(columns: list[np.ndarray], values: list[np.ndarray], n_columns: int) -> csr_array:
    """A matrix (row, column) with one of the values (row,) in each of these columns (row,)."""
    n = len(columns[0])
    entries = np.stack(values, axis=1).ravel(), np.stack(columns, axis=1).ravel()
    return csr_array((*entries, len(columns) * np.arange(n + 1)), shape=(n, n_columns))


def slopes(design: csr_array, p: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, csr_array]:
    """Gradient and negative second derivative of the log-likelihood of choice counts (context, word).

    log p (context, word) = `design` (context · word, parameter) @ parameters + constant of each context.
    """
    total, (n, n_words) = counts.sum(1), p.shape
    gradient = design.T @ (counts - total[:, None] * p).ravel()
    mean = csr_array((p.ravel(), np.arange(p.size), n_words * np.arange(n + 1)), shape=(n, p.size)) @ design
    second = design.T @ _scaled(design, (total[:, None] * p).ravel())
    return gradient, second - mean.T @ _scaled(mean, total)


def _scaled(matrix: csr_array, by: np.ndarray) -> csr_array:
    """Each row multiplied by a number."""
    values = matrix.data * np.repeat(by, np.diff(matrix.indptr))
    return csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)


class Cells(NamedTuple):
    """Choices by unit and memory state: those of a cell have the same probabilities. Words come first: W is small."""

    unit: np.ndarray  # (cell,), rising
    state: np.ndarray  # (cell,)
    of: np.ndarray  # (choice,), the cell of each choice
    counts: np.ndarray  # (word, cell)

    @classmethod
    def group(cls, unit: np.ndarray, state: np.ndarray, chosen: np.ndarray, n_words: int) -> Cells:
        """Cells of choices with this unit, state and word (choice,)."""
        most = int(state.max()) + 1
        cells, of = np.unique(unit * most + state, return_inverse=True)
        counts = np.bincount(chosen * len(cells) + of, minlength=len(cells) * n_words).reshape(n_words, -1)
        return cls(*np.divmod(cells, most), of, counts)

    def by_state(self, n_states: int, weights: np.ndarray | float = 1.0) -> np.ndarray:
        """Choice counts (state, word), those of each cell multiplied by its weight."""
        summed = [np.bincount(self.state, weights * one, minlength=n_states) for one in self.counts]
        return np.stack(summed, axis=1)


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
        return softmax(self.sharpness[unit] * log_q + self.bias.T[:, unit], axis=0)


def fit_tilts(log_q: np.ndarray, cells: Cells, units: int) -> Tilts:
    """The most probable tilts of q (state, word), as random effects around it.

    Sharpness is normal around 1 and biases are normal around 0; their spreads maximise the marginal likelihood in
    Laplace's approximation (EM). Units with few choices stay near the common policy.
    """
    n_words = log_q.shape[1]
    # One column a parameter: the bias of each word, then the sharpness.
    values = np.zeros((units, n_words + 1))
    spreads = np.full(n_words + 1, FIRST_SPREAD)
    logs, total = log_q[cells.state].T.copy(), cells.counts.sum(0)
    of_word = np.eye(n_words)[:, :, None]
    present, starts = np.unique(cells.unit, return_index=True)
    for _ in range(STEPS):
        p = Tilts(1 + values[:, -1], values[:, :-1]).probabilities(cells.unit, logs)
        left = cells.counts - total * p
        # (parameter, word, cell), less their means over words
        centred = np.concatenate([of_word - p[:, None], (logs - (p * logs).sum(0))[None]])
        slope, curvature = -values / spreads**2, np.tile(np.diag(1 / spreads**2), (units, 1, 1))
        slope[present] += np.add.reduceat([*left, (left * logs).sum(0)], starts, axis=1).T
        bend = np.einsum("iwc,jwc->ijc", centred * (total * p), centred)
        curvature[present] += np.moveaxis(np.add.reduceat(bend, starts, axis=2), 2, 0)
        step = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
        values = values + np.clip(step, -LARGEST_STEP, LARGEST_STEP)
        uncertain = np.diagonal(np.linalg.inv(curvature), axis1=1, axis2=2)
        second = (values**2 + uncertain).mean(0)
        second[:-1] = second[:-1].mean()
        spreads = np.maximum(np.sqrt(second), LEAST_SPREAD)
    return Tilts(1 + values[:, -1], values[:, :-1])
