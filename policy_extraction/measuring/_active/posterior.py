"""The posterior of all memories, given the measured ones.

The model is a Gaussian process of the probits z = Φ⁻¹(q) of the first word, cut at q = 1e-6 and 1 - 1e-6: logits of a
policy saturate at ±30 or at a floor, where they say nothing more about a population. A memory is measured together with
its mirror image, so their odd and even parts are known or unknown together, and each has a posterior of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import ndtri

from policy_extraction.measuring._active.features import Features, doubt
from policy_extraction.measuring._active.kernel import EVEN, Kernel
from policy_extraction.measuring._active.marginal_likelihood import NOISE
from policy_extraction.measuring._active.tails import NORMAL, Tails

LEAST = 1e-6  # probability of a word
ROWS = 2048  # of a covariance that are computed at once


def probits(q: np.ndarray) -> np.ndarray:
    """Φ⁻¹ of the first word's probability, from rows (…, 2) that keep both words' digits."""
    first, second = np.moveaxis(ndtri(np.clip(q, LEAST, 0.5)), -1, 0)
    return np.where(q[..., 0] <= q[..., 1], first, -second)


def odd_even(z: np.ndarray) -> np.ndarray:
    """Parts (2, n) of probits (n, 2) of memories and their mirror images."""
    one, image = z.T
    return np.stack([(one - image) / 2, (one + image) / 2])


class Posterior:
    """One part of the probits of all pairs, given that of the measured ones.

    Parameters
    ----------
    kernel
        The prior covariance.
    every
        Features of the P pairs.
    asked
        Numbers of the measured pairs, shape (m,).
    z
        Their part, shape (m,).

    Attributes
    ----------
    mean, variance
        Of the part, shape (P,).
    bend
        Derivative of the means by `Features.doubt`.
    """

    def __init__(self, kernel: Kernel, every: Features, asked: np.ndarray, z: np.ndarray) -> None:
        self.kernel, self.every, self.asked = kernel, every, asked
        K = self._prior(asked)
        factor = K[asked] + NOISE * np.eye(len(asked))
        self._lower = np.tril(cho_factor(factor, lower=True)[0])
        self._known = solve_triangular(self._lower, K.T, lower=True)  # V with posterior covariance K - VᵀV
        self.mean = self._weigh(z)
        weights = cho_solve((self._lower, True), z)
        self.bend = kernel.amplitudes.trend * float(every.doubt[asked] @ weights) if kernel.parity == EVEN else 0.0
        self.variance = np.maximum(kernel.variance(every) - (self._known**2).sum(0), NOISE)

    def columns(self, states: np.ndarray) -> np.ndarray:
        """Posterior covariances of all pairs with some, shape (P, n)."""
        return self._prior(states) - self._known.T @ self._known[:, states]

    def times(self, vector: np.ndarray, most: int) -> np.ndarray:
        """The posterior covariance times a vector (P,), of which the `most` largest contributions are used."""
        used = largest(np.abs(vector) * np.sqrt(self.variance), most)
        told = self._known.T @ (self._known[:, used] @ vector[used])
        return prior_times(self.kernel, self.every, used, vector[used]) - told

    def draw(self, random: np.random.Generator, tails: Tails = NORMAL) -> np.ndarray:
        """A random part (P,) that agrees with the measured one: a prior draw, corrected by its errors.

        Source: Wilson et al. 2020, Efficiently sampling functions from Gaussian process posteriors.
        """
        f = self.kernel.draw(self.every, random)
        deviation = np.sqrt(self.variance)
        return self.mean + deviation * tails.of((f - self._weigh(f[self.asked])) / deviation)

    def _prior(self, states: np.ndarray) -> np.ndarray:
        return prior(self.kernel, self.every, states)

    def _weigh(self, z: np.ndarray) -> np.ndarray:
        """The mean of all pairs, given those of the measured ones."""
        return self._known.T @ solve_triangular(self._lower, z, lower=True)


def prior(kernel: Kernel, every: Features, states: np.ndarray) -> np.ndarray:
    """Prior covariances of all pairs with some, shape (P, n)."""
    some = every.at(states)
    covariance = kernel.between(every, some)
    covariance[states, np.arange(len(states))] += kernel.alone(some)
    return covariance


def prior_times(kernel: Kernel, every: Features, states: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Prior covariances (P, n) of all pairs with some, times a vector (n,)."""
    total = np.zeros(len(every.length))
    for first in range(0, len(states), ROWS):
        some = slice(first, first + ROWS)
        total += prior(kernel, every, states[some]) @ vector[some]
    return total


def largest(sizes: np.ndarray, most: int) -> np.ndarray:
    """Numbers of the `most` largest sizes that are not 0."""
    return np.argsort(sizes)[len(sizes) - min(most, np.count_nonzero(sizes)) :]


class Both(NamedTuple):
    """Posteriors of the odd and of the even part, which are independent."""

    odd: Posterior
    even: Posterior

    @property
    def between(self) -> np.ndarray:
        """Covariances of the two parts of the same pair, shape (P,)."""
        return np.zeros(len(self.odd.mean))

    def columns(self, pairs: np.ndarray) -> np.ndarray:
        """Covariances of both parts of all pairs with both of some, shape (2, P, 2, n)."""
        found = np.zeros((2, len(self.odd.mean), 2, len(pairs)))
        for j, part in enumerate(self):
            found[j, :, j] = part.columns(pairs)
        return found

    def times(self, vectors: np.ndarray, most: int) -> np.ndarray:
        """The covariance times vectors (2, P), as `Posterior.times`."""
        return np.stack([part.times(d, most) for part, d in zip(self, vectors, strict=True)])

    def median(self) -> np.ndarray:
        """Median probits (P, 2) of memories and their mirror images."""
        return joined(self.odd.mean, self.even.mean)

    def draw(self, random: np.random.Generator, tails: tuple[Tails, Tails]) -> np.ndarray:
        """Random probits (P, 2)."""
        odd, even = (part.draw(random, each) for part, each in zip(self, tails, strict=True))
        return joined(odd, even + self.coupling(odd, self.even.every.doubt))

    def coupling(self, odd: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Change of the means of even parts by odd ones, with their doubt in place of the expected one."""
        return self.even.bend * (doubt(odd) - expected)


def joined(odd: np.ndarray, even: np.ndarray) -> np.ndarray:
    """Probits (n, 2) of memories and their mirror images with these parts."""
    return np.stack([even + odd, even - odd], axis=1)
