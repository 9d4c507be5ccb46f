"""Choices whose log-probabilities are linear in parameters: tilts of a policy, and models of similar memories."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.sparse import csr_array
from scipy.special import log_softmax, softmax

STEPS = 12  # of Newton's method, each followed by one for the spreads
LARGEST_STEP = 0.5
LEAST_SPREAD = 1e-3
FIRST_SPREAD = 0.2
PASSES = 8  # of the alternation between parameters and the widths of their priors
MOST_STEPS = 40
LEAST_DETERMINED = 1e-3  # parameters of a group
SETTLED = 0.02  # change of the logarithm of a width
SMALLEST_GAIN, SMALLEST_STEP = 1e-6, 1e-6  # of the log posterior, and of a Newton step
WIDTHS = 0.02, 8.0  # of a prior: data that never contradict would make it 0 or infinite


def slopes(design: csr_array, p: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, csr_array]:
    """Gradient and negative second derivative of the log-likelihood of choice counts (context, word).

    log p (context, word) = `design` (context · word, parameter) @ parameters + constant of each context.
    """
    total, (n, n_words) = counts.sum(1), p.shape
    gradient = design.T @ (counts - total[:, None] * p).ravel()
    mean = csr_array((p.ravel(), np.arange(p.size), n_words * np.arange(n + 1)), shape=(n, p.size)) @ design
    second = design.T @ design.multiply((total[:, None] * p).reshape(-1, 1)).tocsr()
    return gradient, second - mean.T @ mean.multiply(total[:, None]).tocsr()


class Cells(NamedTuple):
    """Choices by unit and memory state: choices in a cell have the same probabilities. Words come first: W is small."""

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
        """Choice counts (state, word), each cell's multiplied by its weight."""
        summed = [np.bincount(self.state, weights * one, minlength=n_states) for one in self.counts]
        return np.stack(summed, axis=1)


class Tilts(NamedTuple):
    """Policies ∝ q^sharpness e^bias of each unit."""

    sharpness: np.ndarray  # (unit,)
    bias: np.ndarray  # (unit, word)

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
        # (parameter, word, cell), minus their means over words
        centred = np.concatenate([of_word - p[:, None], (logs - (p * logs).sum(0))[None]])
        slope, curvature = -values / spreads**2, np.tile(np.diag(1 / spreads**2), (units, 1, 1))
        slope[present] += np.add.reduceat([*left, (left * logs).sum(0)], starts, axis=1).T
        bend = np.einsum("iwc,jwc->ijc", centred * (total * p), centred)
        curvature[present] += np.moveaxis(np.add.reduceat(bend, starts, axis=2), 2, 0)
        step = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
        values = values + limited(step)
        uncertain = np.diagonal(np.linalg.inv(curvature), axis1=1, axis2=2)
        second = (values**2 + uncertain).mean(0)
        second[:-1] = second[:-1].mean()
        spreads = np.maximum(np.sqrt(second), LEAST_SPREAD)
    return Tilts(1 + values[:, -1], values[:, :-1])


def limited(step: np.ndarray) -> np.ndarray:
    """A step of Newton's method, none of whose parts is larger than the largest."""
    return np.clip(step, -LARGEST_STEP, LARGEST_STEP)


class Law(NamedTuple):
    """log q(w) = parameters · features of w + constant."""

    parameters: np.ndarray  # (feature,)
    factor: np.ndarray  # (feature, feature), upper Cholesky factor of the posterior's precision
    widths: np.ndarray  # (group,), standard deviations of the priors

    def drawn(self, random: np.random.Generator) -> Law:
        """Its parameters drawn from the posterior, in the approximation of Laplace."""
        noise = solve_triangular(self.factor, random.standard_normal(len(self.parameters)))
        return self._replace(parameters=self.parameters + noise)

    def probabilities(self, design: csr_array, n_words: int) -> np.ndarray:
        """Probabilities to choose each word, (memory, word)."""
        return np.exp(_logs(design, self.parameters, n_words))


def fit_law(design: csr_array, counts: np.ndarray, groups: np.ndarray, start: Law | None = None) -> Law:
    """The maximum of the posterior for choice counts (memory, word), which need not be whole.

    Each group of parameters is normal around 0. The variances maximise the marginal likelihood in the approximation of
    Laplace, by MacKay's iteration: σ² = Σ θ² / Σ (1 - posterior variance / σ²). It begins with the model `start`.
    """
    parameters, widths, factor = np.zeros(len(groups)), np.ones(groups.max() + 1), np.eye(len(groups))
    if start is not None:
        parameters, widths = start.parameters, start.widths
    for _ in range(PASSES):
        precision = 1 / widths[groups] ** 2
        parameters, factor = _maximum(parameters, design, counts, precision)
        variance = (solve_triangular(factor, np.eye(len(groups))) ** 2).sum(1)
        determined = np.bincount(groups, 1 - variance * precision).clip(min=LEAST_DETERMINED)
        last, widths = widths, np.sqrt(np.bincount(groups, parameters**2) / determined).clip(*WIDTHS)
        if np.abs(np.log(widths / last)).max() < SETTLED:
            break
    return Law(parameters, factor, widths)


def _logs(design: csr_array, parameters: np.ndarray, n_words: int) -> np.ndarray:
    return log_softmax((design @ parameters).reshape(-1, n_words), axis=1)


def _maximum(
    parameters: np.ndarray, design: csr_array, counts: np.ndarray, precision: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Maximum of the concave posterior by damped Newton steps, and the Cholesky factor of its curvature there."""

    def value(at: np.ndarray) -> float:
        return float((counts * _logs(design, at, counts.shape[1])).sum() - 0.5 * precision @ at**2)

    def bent(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient, curvature = slopes(design, np.exp(_logs(design, at, counts.shape[1])), counts)
        return gradient - precision * at, np.triu(cho_factor(curvature.toarray() + np.diag(precision))[0])

    now = value(parameters)
    gradient, factor = bent(parameters)
    for _ in range(MOST_STEPS):
        step, size = cho_solve((factor, False), gradient), 1.0
        while (then := value(parameters + size * step)) < now and size > SMALLEST_STEP:
            size /= 2
        if then < now:
            break
        parameters, now, gain = parameters + size * step, then, float(gradient @ step)
        gradient, factor = bent(parameters)
        if gain < SMALLEST_GAIN:
            break
    return parameters, factor
