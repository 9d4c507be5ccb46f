"""A conditional logit law of the next word, given what each word is to the memory, and biases of single words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.sparse import csr_array
from scipy.special import log_softmax

from validation.populations._choice_model import slopes

PASSES = 8  # of the alternation between parameters and the widths of their priors
STEPS = 40
LEAST_DETERMINED = 1e-3  # parameters of a group
SETTLED = 0.02  # change of the logarithm of a width
SMALLEST_GAIN, SMALLEST_STEP = 1e-6, 1e-6  # of the log posterior, and of a Newton step
WIDTHS = 0.02, 8.0  # of a prior: data that never contradict would make it 0 or infinite


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
    Laplace, by MacKay's iteration: σ² = Σ θ² / Σ (1 - posterior variance / σ²). It begins with the law `start`.
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
    for _ in range(STEPS):
        step = cho_solve((factor, False), gradient)
        size = 1.0
        while (then := value(parameters + size * step)) < now and size > SMALLEST_STEP:
            size /= 2
        if then < now:
            break
        parameters, now = parameters + size * step, then
        gain = float(gradient @ step)
        gradient, factor = bent(parameters)
        if gain < SMALLEST_GAIN:
            break
    return parameters, factor
