"""The posterior of all memories, given the asked ones.

Where a memory was asked its answer is returned as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import ndtri, softmax

from policy_extraction.measuring._predicted.kernel import Kernel
from policy_extraction.measuring._predicted.likelihood import Covariances, add_noise, basis, contrasts_of, cut_errors
from policy_extraction.measuring._predicted.memories import NONE, Patterns, pattern_numbers, states_of

WAVES = 32  # random functions whose sum is a draw of `near`; its covariance is exact on average
JITTER = 1e-9  # relative; keeps covariances of patterns regular
ROWS = 4096  # memories that are predicted at once
CONTRASTS = 1000  # of which covariances are computed at once


class Answered(NamedTuple):
    """Memories asked: rows of codes (n, H), choice probabilities (n, W), and all patterns."""

    codes: np.ndarray
    q: np.ndarray
    patterns: Patterns

    @property
    def n_words(self) -> int:
        return self.q.shape[1]

    @property
    def y(self) -> np.ndarray:
        """Contrasts (n, W-1)."""
        return contrasts_of(self.q)


@dataclass(frozen=True)
class Prediction:
    """A policy as a function of memories: measured where asked, elsewhere the softmax of logits.

    Parameters
    ----------
    answered
        The memories asked.
    kernel
        Tells how near memories are.
    table
        Logits (U, W) of the patterns of each word.
    weights
        Of `near` to each answer, shape (n, W).
    waves
        Random functions of the memory, if the prediction is a random one.
    """

    answered: Answered
    kernel: Kernel
    table: np.ndarray
    weights: np.ndarray
    waves: Waves | None = None

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        """Choice probabilities (n, W) in memories, rows of codes (n, H)."""
        q = np.empty((len(codes), self.answered.n_words))
        for first in range(0, len(codes), ROWS):
            some = slice(first, first + ROWS)
            q[some] = softmax(self.logits(codes[some]), axis=1)
        states = states_of(codes, q.shape[1])
        order, sorted_states = self._asked
        place = np.minimum(np.searchsorted(sorted_states, states), len(order) - 1)
        known = sorted_states[place] == states
        q[known] = self.answered.q[order[place[known]]]
        return q

    def logits(self, codes: np.ndarray) -> np.ndarray:
        """Logits (n, W), not of the answers but of the model."""
        n_words = self.answered.n_words
        found = self.table[pattern_numbers(codes, n_words), np.arange(n_words)]
        found += self.kernel.near(codes, self.answered.codes) @ self.weights
        return found if self.waves is None else found + self.waves(codes)

    @cached_property
    def _asked(self) -> tuple[np.ndarray, np.ndarray]:
        states = states_of(self.answered.codes, self.answered.n_words)
        order = np.argsort(states)
        return order, states[order]


@dataclass(frozen=True)
class Waves:
    """A random function with the covariance of `near` and `alone`.

    A wave takes a random set of interactions, each with the chance 1 - exp(-ν), and multiplies random signs of what was
    said and heard there. Two memories then have a mean product of exp(-Σ ν [they differ]).
    """

    taken: np.ndarray  # (H, F), whether a wave hangs on the interaction
    seeds: np.ndarray  # (H, F), of signs
    sizes: np.ndarray  # (F, W)
    alone: float  # standard deviation
    seed: int

    @classmethod
    def drawn(cls, kernel: Kernel, memory_length: int, n_words: int, random: np.random.Generator) -> Waves:
        """A random one."""
        chance = -np.expm1(-kernel.rates(memory_length))[:, None]
        shape = (memory_length, WAVES)
        sizes = np.sqrt(kernel.sizes.near / WAVES) * random.standard_normal((WAVES, n_words))
        seeds = random.integers(2**63, size=shape, dtype=np.uint64)
        return cls(
            random.random(shape) < chance, seeds, sizes, np.sqrt(kernel.sizes.alone), int(random.integers(2**62))
        )

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        """Values (n, W)."""
        signs = np.ones((len(codes), self.sizes.shape[0]))
        for taken, seeds, column in zip(self.taken, self.seeds, codes.T, strict=True):
            positive = mixed(seeds[taken] ^ mixed((column - NONE).astype(np.uint64))[:, None]) >> np.uint64(63)
            signs[:, taken] *= np.where(positive, 1.0, -1.0)
        n_words = self.sizes.shape[1]
        states = states_of(codes, n_words).astype(np.uint64)
        which = mixed(mixed(states ^ np.uint64(self.seed))[:, None] + np.arange(n_words, dtype=np.uint64))
        uniform = ((which >> np.uint64(12)).astype(float) + 0.5) / 2**52
        return signs @ self.sizes + self.alone * ndtri(uniform)

    def scaled(self, factor: float) -> Waves:
        """This function times a factor."""
        return replace(self, sizes=factor * self.sizes, alone=factor * self.alone)


def mixed(numbers: np.ndarray) -> np.ndarray:
    """Numbers of 64 bits that look random; equal for equal ones.

    Source: Steele, Lea and Flood 2014, Fast splittable pseudorandom number generators.
    """
    with np.errstate(over="ignore"):
        numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
        numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return numbers ^ (numbers >> np.uint64(31))


class Posterior:
    """The Gaussian process of logits, given the answers, for one kernel."""

    def __init__(self, kernel: Kernel, answered: Answered) -> None:
        self.kernel, self.answered = kernel, answered
        self._every = answered.patterns
        between = self._between(answered.codes)
        K = add_noise(between.joined(kernel, between.parts(kernel)), answered.q)
        self._lower = np.linalg.cholesky(K)
        self._patterns = pattern_numbers(answered.codes, answered.n_words)

    @cached_property
    def mean(self) -> Prediction:
        """The mean of the logits, as a policy."""
        return self._prediction(self.answered.y)

    def predicted(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means (n, W-1) of contrasts and their covariances (n(W-1), n(W-1)) in memories that were not asked."""
        told = self._told(codes)
        between = Covariances(codes, codes, self._every, self.answered.n_words)
        K = between.joined(self.kernel, between.parts(self.kernel)).reshape(told.shape[1], -1)
        mean = told.T @ solve_triangular(self._lower, self.answered.y.ravel(), lower=True)
        return mean.reshape(len(codes), -1), K - told.T @ told

    def variances(self, codes: np.ndarray) -> np.ndarray:
        """Mean variances (n,) of contrasts in memories."""
        found, step = np.empty(len(codes)), max(1, CONTRASTS // self.answered.n_words)
        for first in range(0, len(codes), step):
            some = slice(first, first + step)
            _, covariance = self.predicted(codes[some])
            found[some] = np.diag(covariance).reshape(len(codes[some]), -1).mean(1)
        return found

    def draw(self, random: np.random.Generator, scale: float) -> Prediction:
        """A random policy that agrees with the answers: a prior draw, corrected by its errors there.

        Its distance from the mean is `scale` times that of the posterior. Source: Wilson et al. 2020, Efficiently
        sampling functions from Gaussian process posteriors.
        """
        a, n_words = self.kernel.sizes, self.answered.n_words
        shared, own = self._roots
        table = (shared @ random.standard_normal(len(shared)))[:, None] + np.sqrt(a.bias) * random.standard_normal(
            n_words
        )
        table = table + np.sqrt(a.own) * own @ random.standard_normal((len(own), n_words))
        waves = Waves.drawn(self.kernel, self.answered.codes.shape[1], n_words, random)
        there = table[self._patterns, np.arange(n_words)] + waves(self.answered.codes)
        there += np.sqrt(cut_errors(self.answered.q)) * random.standard_normal(there.shape)
        correction = self._prediction(self.answered.y - there @ basis(n_words))
        table = self.mean.table + scale * (table + correction.table - self.mean.table)
        weights = self.mean.weights + scale * (correction.weights - self.mean.weights)
        return replace(self.mean, table=table, weights=weights, waves=waves.scaled(scale))

    @cached_property
    def _roots(self) -> tuple[np.ndarray, np.ndarray]:
        """Roots of the covariances of patterns: of what words share, and of `smooth`."""
        a = self.kernel.sizes
        trend, smooth, rough = self.kernel.parts(self._every, self._every)
        regular = JITTER * np.eye(len(trend))
        shared = a.trend * trend + a.smooth * smooth + a.rough * rough
        return np.linalg.cholesky(shared + np.trace(shared) * regular), np.linalg.cholesky(smooth + 10 * regular)

    def _prediction(self, y: np.ndarray) -> Prediction:
        """The mean, had the answers these contrasts (n, W-1)."""
        n_words, a = self.answered.n_words, self.kernel.sizes
        weights = cho_solve((self._lower, True), y.ravel()).reshape(y.shape) @ basis(n_words).T
        used = np.unique(self._patterns)
        by_pattern = np.zeros((len(self._every.length), n_words))
        np.add.at(by_pattern, (self._patterns, np.arange(n_words)), weights)
        trend, smooth, rough = self.kernel.parts(self._every, self._every.at(used))
        shared = a.trend * trend + a.smooth * smooth + a.rough * rough
        table = (shared @ by_pattern[used].sum(1))[:, None] + a.own * smooth @ by_pattern[used]
        return Prediction(self.answered, self.kernel, table + a.bias * weights.sum(0), a.near * weights)

    def _told(self, codes: np.ndarray) -> np.ndarray:
        """V with posterior covariance K - VᵀV."""
        between = self._between(codes)
        K = between.joined(self.kernel, between.parts(self.kernel)).reshape(len(self._lower), -1)
        return solve_triangular(self._lower, K, lower=True)

    def _between(self, codes: np.ndarray) -> Covariances:
        return Covariances(self.answered.codes, codes, self._every, self.answered.n_words)
