"""A conditional logit law of the next word, given what each word is to the memory, and biases of single words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import log_softmax

from validation.populations._memory_relations import Relations, feature_groups

SITUATIONS = 3
ROWS_AT_ONCE = 2**21  # numbers in an array of features
KEPT = 2**18  # memories · words of which the features are kept rather than made at each step
PASSES = 8  # of the alternation between parameters and the widths of their priors
STEPS = 40
LEAST_DETERMINED = 1e-3  # parameters of a group
SETTLED = 0.02  # change of the logarithm of a width
SMALLEST_GAIN, SMALLEST_STEP = 1e-6, 1e-6  # of the log posterior, and of a Newton step
WIDTHS = 0.02, 8.0  # of a prior: data that never contradict would make it 0 or infinite


class Law(NamedTuple):
    """log q(w) = feature weights · features + biases of w in its situations + constant."""

    parameters: np.ndarray  # (F + 3W,): weights of features, then biases (situation, word)
    factor: np.ndarray  # (F + 3W,) squared, upper Cholesky factor of the posterior's precision
    widths: np.ndarray  # (group,), standard deviations of the priors

    def drawn(self, random: np.random.Generator) -> Law:
        """Its parameters drawn from the posterior, in the approximation of Laplace."""
        noise = solve_triangular(self.factor, random.standard_normal(len(self.parameters)))
        return self._replace(parameters=self.parameters + noise)

    def probabilities(self, relations: Relations) -> np.ndarray:
        """Probabilities to choose each word, (memory, word)."""
        names = len(self.parameters) > len(feature_groups(relations.words.shape[1] // 2))
        parts = [np.exp(_logs(self.parameters, *data)) for _, data in _portions(relations, names)]
        return np.concatenate(parts) if parts else np.empty(relations.place.shape)


def fit_law(relations: Relations, counts: np.ndarray, names: bool, start: Law | None = None) -> Law:
    """The maximum of the posterior for choice counts (memory, word), which need not be whole.

    Each group of parameters is normal around 0. The variances maximise the marginal likelihood in the approximation of
    Laplace, by MacKay's iteration: σ² = Σ θ² / Σ (1 - posterior variance / σ²). It begins with the law `start`.
    Without `names` no word has biases.
    """
    n_words = counts.shape[1]
    kinds = feature_groups(relations.words.shape[1] // 2)
    groups = np.concatenate([kinds, kinds.max() + 1 + np.repeat(np.arange(SITUATIONS if names else 0), n_words)])
    parameters, widths, factor = np.zeros(len(groups)), np.ones(groups.max() + 1), np.eye(len(groups))
    if start is not None:
        parameters, widths = start.parameters, start.widths
    for _ in range(PASSES):
        precision = 1 / widths[groups] ** 2
        parameters, factor = _maximum(parameters, relations, counts, precision)
        variance = (solve_triangular(factor, np.eye(len(groups))) ** 2).sum(1)
        determined = np.bincount(groups, 1 - variance * precision).clip(min=LEAST_DETERMINED)
        last, widths = widths, np.sqrt(np.bincount(groups, parameters**2) / determined).clip(*WIDTHS)
        if np.abs(np.log(widths / last)).max() < SETTLED:
            break
    return Law(parameters, factor, widths)


def _portions(relations: Relations, names: bool) -> Iterator[tuple[slice, tuple[np.ndarray, np.ndarray]]]:
    n, n_words = relations.place.shape
    size = max(1, ROWS_AT_ONCE // (n_words * (2 * relations.words.shape[1] + 3)))
    for start in range(0, n, size):
        some = slice(start, min(start + size, n))
        part = relations.part(some)
        yield some, (part.features(), part.situations()[: SITUATIONS if names else 0])


def _logs(parameters: np.ndarray, features: np.ndarray, situations: np.ndarray) -> np.ndarray:
    weights, biases = np.split(parameters, [features.shape[2]])
    biases = biases.reshape(len(situations), features.shape[1])
    return log_softmax(features @ weights + (situations * biases[:, None, :]).sum(0), axis=1)


def _maximum(
    parameters: np.ndarray, relations: Relations, counts: np.ndarray, precision: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Maximum of the concave posterior by damped Newton steps, and the Cholesky factor of its curvature there."""
    names = len(parameters) > len(feature_groups(relations.words.shape[1] // 2))

    def portions() -> Iterable[tuple[slice, tuple[np.ndarray, np.ndarray]]]:
        return _portions(relations, names) if kept is None else kept

    kept = list(_portions(relations, names)) if relations.place.size < KEPT else None

    def value(at: np.ndarray) -> float:
        logs = sum((counts[some] * _logs(at, *part)).sum() for some, part in portions())
        return float(logs) - 0.5 * float(precision @ at**2)

    def slopes(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient, curvature = -precision * at, np.diag(precision)
        for some, part in portions():
            slope, bend = _derivatives(at, *part, counts[some])
            gradient, curvature = gradient + slope, curvature + bend
        return gradient, np.triu(cho_factor(curvature)[0])

    now = value(parameters)
    gradient, factor = slopes(parameters)
    for _ in range(STEPS):
        step = cho_solve((factor, False), gradient)
        size = 1.0
        while (then := value(parameters + size * step)) < now and size > SMALLEST_STEP:
            size /= 2
        if then < now:
            break
        parameters, now = parameters + size * step, then
        gain = float(gradient @ step)
        gradient, factor = slopes(parameters)
        if gain < SMALLEST_GAIN:
            break
    return parameters, factor


def _derivatives(
    parameters: np.ndarray, features: np.ndarray, situations: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient of the log-likelihood and its negative second derivative."""
    q = np.exp(_logs(parameters, features, situations))
    n, n_words, n_features = features.shape
    total = counts.sum(1)
    residual, expected = counts - total[:, None] * q, total[:, None] * q
    flat = features.reshape(-1, n_features)
    gradient = np.concatenate([residual.ravel() @ flat, (situations * residual).sum(1).ravel()])
    acting = (situations * q).transpose(1, 0, 2).reshape(n, -1)  # of each bias, (memory, situation · word)
    mean = np.concatenate([(q[:, None, :] @ features)[:, 0], acting], axis=1)
    weighted = expected[:, :, None] * features
    curvature = np.zeros((len(parameters), len(parameters)))
    curvature[:n_features, :n_features] = weighted.reshape(-1, n_features).T @ flat
    cross = (situations.transpose(2, 0, 1) @ weighted.transpose(1, 0, 2)).transpose(1, 0, 2).reshape(-1, n_features)
    curvature[n_features:, :n_features], curvature[:n_features, n_features:] = cross, cross.T
    number = n_features + np.arange(acting.shape[1]).reshape(len(situations), n_words)
    for s, one in enumerate(situations):
        for t, other in enumerate(situations):
            curvature[number[s], number[t]] += (one * expected * other).sum(0)
    return gradient, curvature - (mean * total[:, None]).T @ mean
