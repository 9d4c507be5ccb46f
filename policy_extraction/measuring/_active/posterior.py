"""What the measured memories say about all others.

The model is a Gaussian process of the probits z = Φ⁻¹(q) of the first word, cut at q = 1e-6 and 1 - 1e-6: logits of a
policy saturate at ±30 or at a floor, where they say nothing more about a population.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, solve_triangular
from scipy.special import ndtri

from policy_extraction.measuring._active.features import Features
from policy_extraction.measuring._active.kernel import Kernel
from policy_extraction.measuring._active.marginal_likelihood import NOISE
from policy_extraction.measuring._active.tails import Tails

LEAST = 1e-6  # probability of a word
NORMAL = Tails()
ROWS = 2048  # of a covariance that are computed at once


def probits(q: np.ndarray) -> np.ndarray:
    """Φ⁻¹ of the first word's probability, from rows (n, 2) that keep both words' digits."""
    first, second = ndtri(np.clip(q, LEAST, 0.5)).T
    return np.where(q[:, 0] <= q[:, 1], first, -second)


class Posterior:
    """Probits of all memories, given those of the measured ones.

    Parameters
    ----------
    kernel
        The prior covariance.
    every
        Features of all S memories.
    asked
        Numbers of the measured memories, shape (m,).
    z
        Their probits, shape (m,).

    Attributes
    ----------
    mean, variance
        Of the probits, shape (S,).
    """

    def __init__(self, kernel: Kernel, every: Features, asked: np.ndarray, z: np.ndarray) -> None:
        self.kernel, self.every, self.asked = kernel, every, asked
        K = self._prior(asked)
        factor = K[asked] + NOISE * np.eye(len(asked))
        self._lower = np.tril(cho_factor(factor, lower=True)[0])
        self._known = solve_triangular(self._lower, K.T, lower=True)  # V with posterior covariance K - VᵀV
        self.mean = self._weigh(z)
        self.variance = np.maximum(kernel.variance(every) - (self._known**2).sum(0), NOISE)

    def columns(self, states: np.ndarray) -> np.ndarray:
        """Posterior covariances of all memories with some, shape (S, n)."""
        return self._prior(states) - self._known.T @ self._known[:, states]

    def times(self, vector: np.ndarray, most: int) -> np.ndarray:
        """The posterior covariance times a vector (S,), of which the `most` largest contributions are used."""
        size = np.abs(vector) * np.sqrt(self.variance)
        used = np.argsort(size)[len(size) - min(most, np.count_nonzero(size)) :]
        total = np.zeros(len(vector))
        for first in range(0, len(used), ROWS):
            some = used[first : first + ROWS]
            total += self.columns(some) @ vector[some]
        return total

    def draw(self, random: np.random.Generator, tails: Tails = NORMAL) -> np.ndarray:
        """Random probits (S,) that agree with the measured ones: a prior draw, corrected by its errors.

        Source: Wilson et al. 2020, Efficiently sampling functions from Gaussian process posteriors.
        """
        f = self.kernel.draw(self.every, random)
        return self.mean + tails.draw(len(f), random) * (f - self._weigh(f[self.asked]))

    def _prior(self, states: np.ndarray) -> np.ndarray:
        covariance = self.kernel.between(self.every, self.every.at(states))
        covariance[states, np.arange(len(states))] += self.kernel.amplitudes.alone
        return covariance

    def _weigh(self, z: np.ndarray) -> np.ndarray:
        """The mean of all probits, given those of the measured memories."""
        return self._known.T @ solve_triangular(self._lower, z, lower=True)
