"""N agents of a reaction model as a Markov chain on all compositions, for exact times of first passage."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import splu

import meanfield

REFINED = 8  # times


class ExactChain:
    """The chain of numbers of agents in the states, with class sizes `sizes`, in the time of the model."""

    def __init__(self, model: meanfield.ReactionModel, sizes: list[int]) -> None:
        parts = [_compositions(size, int((model.classes == c).sum())) for c, size in enumerate(sizes)]
        rows = np.array(list(itertools.product(*(range(len(part)) for part in parts))))
        self.counts = np.zeros((len(rows), model.n_states), int)
        for c, part in enumerate(parts):
            self.counts[:, model.classes == c] = part[rows[:, c]]
        self.n_agents = sum(sizes)
        self._place = (self.n_agents + 1) ** np.arange(model.n_states)
        self._codes = self.counts @ self._place
        self._order = np.argsort(self._codes)
        self.generator = self._generator(model)

    def first_passage(self, start: np.ndarray, target: np.ndarray) -> float:
        """Mean time from the composition nearest to `start` until `target`, a mask over compositions, holds.

        Rounding of the diagonal costs digits of long times, which residuals in extended precision bring back.
        """
        free = np.flatnonzero(~target)
        solver = splu(csc_array(-self.generator[free][:, free]))
        moves = self.generator.astype(np.longdouble)
        moves.setdiag(0)
        outward, inward = moves.sum(1)[free], moves[free][:, free]
        times = np.zeros(len(self.counts), np.longdouble)
        for _ in range(REFINED):
            missed = 1 - outward * times[free] + inward @ times[free]
            times[free] += solver.solve(missed.astype(float))
        return float(times[np.abs(self.counts / self.n_agents - start).sum(1).argmin()])

    def _generator(self, model: meanfield.ReactionModel) -> csr_array:
        """Pairs of distinct agents meet at the rate ε/(N - 1) for each order of the two."""
        K, n, parts = model.n_states, self.counts, (model.alpha, model.beta, model.first, model.second)
        P = meanfield.ReactionModel(model.states, *parts, encounter_rate=model.encounter_rate).tensor()
        moves = [(move, P[move] * model.encounter_rate) for move in zip(*np.nonzero(P), strict=True)]
        rows, columns, rates = [], [], []
        for (i, j, k, m), rate in moves:
            change = np.eye(K, dtype=int)[[k, m]].sum(0) - np.eye(K, dtype=int)[[i, j]].sum(0)
            if change.any():
                self._add(rows, columns, rates, change, rate * n[:, i] * (n[:, j] - (i == j)) / (self.n_agents - 1))
        for i, k in zip(*model.spontaneous.nonzero(), strict=True):
            change = np.eye(K, dtype=int)[k] - np.eye(K, dtype=int)[i]
            self._add(rows, columns, rates, change, model.spontaneous[i, k] * n[:, i])
        values = model.changes.values(n / self.n_agents)
        for i, k, rate in zip(model.changes.source, model.changes.target, values.T, strict=True):
            self._add(rows, columns, rates, np.eye(K, dtype=int)[k] - np.eye(K, dtype=int)[i], rate * n[:, i])
        row, column, rate = map(np.concatenate, (rows, columns, rates))
        size = len(n)
        inward = csr_array((rate, (row, column)), shape=(size, size))
        outward = csr_array((inward.sum(1), (np.arange(size), np.arange(size))), shape=(size, size))
        return csr_array(inward - outward)

    def _add(self, rows: list, columns: list, rates: list, change: np.ndarray, rate: np.ndarray) -> None:
        from_ = np.flatnonzero(rate > 0)
        codes = self._codes[from_] + change @ self._place
        rows.append(from_)
        columns.append(self._order[np.searchsorted(self._codes, codes, sorter=self._order)])
        rates.append(rate[from_])


def _compositions(total: int, parts: int) -> np.ndarray:
    """All ways to share `total` agents among `parts` states."""
    bars = np.array(list(itertools.combinations(range(total + parts - 1), parts - 1)), int)
    edges = np.concatenate([np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), total + parts - 1)], axis=1)
    return np.diff(edges, axis=1) - 1
