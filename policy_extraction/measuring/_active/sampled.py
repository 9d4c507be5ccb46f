"""The loop of an active measurement with sampled answers, of services that give no log-probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from policy_extraction.measuring._active.choice import WEIGHTS, choices_at_nodes
from policy_extraction.measuring._active.explore import REFIT, Exploration, choices
from policy_extraction.measuring._active.known import Known
from policy_extraction.measuring._active.marginal_likelihood import Measured
from policy_extraction.measuring._active.noisy import (
    Noisy,
    doubted_in,
    noisy_posterior,
    paired_counts,
    parts_of,
    sites_of,
)
from policy_extraction.measuring._active.sites import Sites

ANSWERS = 4  # of a memory at a time; a multiple of the two orders
FITS = 2  # of sites and kernels, in turn
EVENLY = 0.2  # part of the random pairs
UNKNOWN = 1e6  # variance of a probit of which an answer says nothing
LEAST_CHANCE = 1e-12


@dataclass
class SampledExploration(Exploration):
    """As `Exploration`; `ask` gives counts (n, 2) of both words in `ANSWERS` new answers in states (n,).

    Pairs are asked again and again, each time with `ANSWERS` answers in both memories: `order` has all of these times.
    """

    answers = ANSWERS

    def __post_init__(self) -> None:
        super().__post_init__()
        self.counts = np.zeros((self.space.n_states, 2), dtype=int)
        self.sites = Sites(*np.zeros((2, 2, len(self.pairs))))

    @property
    def asked(self) -> np.ndarray:
        """Whether a memory was asked, shape (S,)."""
        return self.counts.sum(1) > 0

    @property
    def free(self) -> np.ndarray:
        """All pairs can be asked again."""
        return np.ones(len(self.pairs), dtype=bool)

    @property
    def noise(self) -> np.ndarray:
        """Errors of the parts, (P, 2, 2), that `ANSWERS` answers in both memories of each pair have."""
        z = self.posterior.median()
        # The information of an answer in z is φ(z)²/(q(1 - q)).
        density = np.maximum(np.exp(-(z**2)) / (2 * np.pi), np.finfo(float).tiny)
        one, image = np.minimum(ndtr(z) * ndtr(-z) / (ANSWERS * density), UNKNOWN).T
        image = np.where(np.arange(len(z)) == 0, UNKNOWN, image)  # the empty memory has no mirror image
        return np.stack([one + image, one - image, one - image, one + image], axis=1).reshape(-1, 2, 2) / 4

    def run(self, budget: int) -> Iterator[Known]:
        """Ask for up to `budget` answers; yields as `Exploration.run`."""
        yield from self._run(budget // (2 * ANSWERS))

    @property
    def used(self) -> int:
        """Number of answers."""
        return int(self.counts.sum())

    def _drawn_at_random(self, weights: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Pairs for tests, with replacement, and their chances; a part is drawn evenly.

        Where a policy is nearly sure only a few memories have derivatives, and the goal may still hang on others.
        """
        chances = (1 - EVENLY) * weights / weights.sum() + EVENLY / len(weights)
        drawn = self.random.choice(len(chances), number, p=chances)
        return drawn, chances[drawn]

    def _measure(self, asked: np.ndarray, n_tests: int = 0) -> np.ndarray:
        alone = asked == 0
        counts = np.zeros((len(asked), 2, 2), dtype=int)
        every = np.ones((len(asked), 2), dtype=bool)
        every[alone, 1] = False
        counts[every] = self.ask(self.pairs[asked][every])
        if n_tests:
            self._test(asked[:n_tests], counts[:n_tests])
        np.add.at(self.counts, self.pairs[asked], counts)
        self.order = np.concatenate([self.order, asked])
        return counts[:n_tests, :, 0] / ANSWERS

    def _test(self, tests: np.ndarray, counts: np.ndarray) -> None:
        # A pair that was drawn twice is one test: its counts share their errors.
        pairs, which = np.unique(tests, return_inverse=True)
        totals = np.zeros((len(pairs), 2, 2), dtype=int)
        np.add.at(totals, which, counts)
        for pair, own, at in zip(pairs, totals, choices_at_nodes(self.posterior, pairs), strict=True):
            even, odd = quantiles(own, at, self.random)
            self.held_out.even.every.append(even)
            if pair:
                self.held_out.odd.every.append(odd)

    def _fit(self) -> None:
        pairs = np.unique(self.order)
        counts, every = paired_counts(self.counts, self.pairs, pairs), self.every.at(pairs)
        start = self._start(pairs)
        if len(self.order) >= REFIT * self._fitted_at:
            for _ in range(FITS):
                known = start = sites_of(self.parameters[0], self.every, pairs, counts, start)
                parts, variance = parts_of(known)
                some = np.isfinite(variance)
                at = every._replace(doubt=doubted_in(self.parameters[0], every, np.arange(len(pairs)), known))
                self._fit_kernels([Measured(at.at(some), part[some], variance[some]) for part in parts])
        known = sites_of(self.parameters[0], self.every, pairs, counts, start)
        for mine, new in zip(self.sites, known, strict=True):
            mine[:, pairs] = new
        self.posterior = self._posterior(self.parameters[0])

    def _start(self, pairs: np.ndarray) -> Sites | None:
        return Sites(*(each[:, pairs] for each in self.sites)) if self.sites.precision.any() else None

    def _posterior(self, parameters: np.ndarray) -> Noisy:
        pairs = np.unique(self.order)
        return noisy_posterior(parameters, self.every, pairs, Sites(*(each[:, pairs] for each in self.sites)))

    def _choices(self, z: np.ndarray) -> np.ndarray:
        return choices(z, self.pairs, np.zeros(self.space.n_states, dtype=bool), self.q)


def quantiles(counts: np.ndarray, q: np.ndarray, random: np.random.Generator) -> tuple[float, float]:
    """Errors of predicted counts (2, 2) of a pair in standard deviations, of the even and of the odd part.

    The sum of the first words' counts tells of the even part, and their difference, given the sum, of the odd one. Both
    are turned into their quantiles, drawn within the chance of the count itself, and these into those of a Gaussian.
    They are independent and normal if choices have the predicted values `q` (2, n, n) at the quadrature's nodes.
    """
    n, n_image = counts.sum(1)
    first, image = (
        binom.pmf(np.arange(total + 1), total, each[..., None]) for total, each in zip((n, n_image), q, strict=True)
    )
    table = np.einsum("oek,oel,o,e->kl", first, image, WEIGHTS, WEIGHTS, optimize=True)
    k, k_image = counts[:, 0]
    sums = np.add.outer(np.arange(n + 1), np.arange(n_image + 1))
    even = np.array([table[sums == total].sum() for total in range(n + n_image + 1)])
    given = np.array([table[j, k + k_image - j] for j in range(n + 1) if 0 <= k + k_image - j <= n_image])
    place = k - max(0, k + k_image - n_image)
    return _normal(even, k + k_image, random), _normal(given, place, random)


def _normal(chances: np.ndarray, place: int, random: np.random.Generator) -> float:
    below = chances[:place].sum() + random.random() * chances[place]
    return float(ndtri(np.clip(below / chances.sum(), LEAST_CHANCE, 1 - LEAST_CHANCE)))
