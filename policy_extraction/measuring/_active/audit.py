"""The rest of a goal's error, from memories that were drawn at random and predicted before.

To first order a goal with derivatives g is off by E = Σ g_i (q_i - m_i), summed over pairs of memories with predictions
m. A pair drawn with chance p_i gives the estimate g_i (q_i - m_i)/p_i, unbiased for any policy, any model
and given derivatives. Pairs are
drawn without replacement, so those already drawn are exact and count besides. All estimates of later batches add what
the predictions have changed since. They have one mean, and no correlation.
Sampled answers are never exact, so their pairs are drawn with replacement, and frequencies take the place of q.
Source: Des Raj 1956, Some estimators in sampling with varying probabilities without replacement; Hansen and Hurwitz
1943, On the theory of sampling from finite populations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from policy_extraction.measuring._active.held_out import LEAST, LEVEL

LEAST_WEIGHT = 1e-9  # of a pair, in those of the largest


class Draws(NamedTuple):
    """Pairs (n,) in the order in which they were drawn, the chance (n,) of each among those left, and what was
    predicted of the first word in all memories, shape (P, 2). Drawn with replacement, the chance among all, the
    frequencies (n, 2) of the first word in answers sampled since, and their number in each memory."""

    pairs: np.ndarray
    chances: np.ndarray
    predicted: np.ndarray
    frequencies: np.ndarray | None = None
    answers: int = 1


@dataclass
class Audit:
    """Batches of memories drawn at random."""

    batches: list[Draws] = field(default_factory=list)

    def add(self, batch: Draws) -> None:
        """Keep a batch of random pairs."""
        self.batches.append(batch)

    @property
    def number(self) -> int:
        """Number of pairs drawn."""
        return sum(len(each.pairs) for each in self.batches)

    def estimates(self, derivatives: np.ndarray, best: np.ndarray) -> np.ndarray:
        """Estimates of the error that `best` leaves in a goal, by all draws in order.

        `derivatives` and `best`, the first word's probabilities as they are now known, have shape (P, 2).
        """
        found = [np.empty(0)]
        for pairs, chances, predicted, frequencies, _ in self.batches:
            found_q = best[pairs] if frequencies is None else frequencies
            errors = (derivatives[pairs] * (found_q - predicted[pairs])).sum(1)
            changed = (derivatives * (predicted - best)).sum()
            exact = np.cumsum(errors) - errors if frequencies is None else 0.0
            found.append(changed + exact + errors / chances)
        return np.concatenate(found)

    def error(self, derivatives: np.ndarray, best: np.ndarray) -> tuple[float, float]:
        """The mean of these estimates and half the width of its interval, infinite with less than two draws.

        The latest half of the draws counts, and at least `LEAST`: predictions of earlier ones were worse. The spread of
        sampled answers is at least the expected one: a rare word may be in none of them.
        """
        every = self.estimates(derivatives, best)
        latest = every[-max(len(every) // 2, LEAST) :]
        if len(latest) < 2:
            return 0.0, np.inf
        quantile = student.ppf((1 + LEVEL) / 2, len(latest) - 1)
        expected = self._noise(derivatives)[-len(latest) :].mean()
        return float(latest.mean()), float(quantile * np.sqrt(max(latest.var(ddof=1), expected) / len(latest)))

    def _noise(self, derivatives: np.ndarray) -> np.ndarray:
        """Variances of the estimates that sampled answers are expected to have, in order; 0 for others."""
        found = [np.empty(0)]
        for pairs, chances, predicted, frequencies, answers in self.batches:
            q = predicted[pairs]
            size = 0.0 if frequencies is None else 1 / answers
            found.append(size * (derivatives[pairs] ** 2 * q * (1 - q)).sum(1) / chances**2)
        return np.concatenate(found)


def drawn_at_random(
    weights: np.ndarray, asked: np.ndarray, number: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs that were not asked, drawn one after the other with chances in proportion to weights (P,), and the chances.

    `LEAST_WEIGHT` of the largest weight is added to all; if all are 0, they are alike.
    """
    weights = np.where(asked, 0.0, weights)
    largest = weights.max()
    weights = np.where(asked, 0.0, weights / largest + LEAST_WEIGHT if largest > 0 else 1.0)
    # The smallest of exponential times with these rates comes first.
    times = np.divide(random.exponential(size=len(weights)), weights, out=np.full(len(weights), np.inf), where=~asked)
    order = np.argsort(times)
    left = np.cumsum(weights[order[::-1]])[::-1]
    drawn = order[:number]
    return drawn, weights[drawn] / left[:number]
