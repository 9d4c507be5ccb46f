"""The loop of an active measurement with sampled answers, of services that give no log-probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from policy_extraction.measuring._active.choice import WEIGHTS, XI
from policy_extraction.measuring._active.explore import LOGIT, REFIT, Exploration
from policy_extraction.measuring._active.sites import Sites, sites
from policy_extraction.measuring._doubt import Tails
from policy_extraction.measuring._gaussian_process import NOISE, covariances

ANSWERS = 4  # of a memory at a time; a multiple of the two orders
UNKNOWN = 1e6  # variance of a probit of which an answer says nothing
LEAST_CHANCE = 1e-12


@dataclass
class SampledExploration(Exploration):
    """An `Exploration` in which `ask` gives counts (n, 2) of both words in `ANSWERS` new answers in states (n,).

    Memories are asked again and again: `order` has all of these times.
    """

    once = False
    orders: int = ANSWERS

    def __post_init__(self) -> None:
        super().__post_init__()
        self.counts = np.zeros((self.space.n_states, 2), dtype=int)
        self._sites = Sites(*np.zeros((2, self.space.n_states)))

    @property
    def used(self) -> int:
        """Number of answers."""
        return int(self.counts.sum())

    @property
    def noise(self) -> np.ndarray:
        """Variances (S,) of the probits' errors by `ANSWERS` answers: their information is φ(z)²/(q(1 - q)) each."""
        density = np.maximum(np.exp(-(self.mean**2)) / (2 * np.pi), np.finfo(float).tiny)
        return np.minimum(ndtr(self.mean) * ndtr(-self.mean) / (ANSWERS * density), UNKNOWN)

    def _measure(self, states: np.ndarray, n_tests: int = 0) -> None:
        counts = self.ask(states)
        scale = np.sqrt(self.variance[states[:n_tests]]) if n_tests else ()
        for k, state, deviation in zip(counts[:n_tests, 0], states, scale, strict=False):
            q = ndtr(self.mean[state] + deviation * Tails().of(XI))
            self.doubt.errors.append(np.array([quantile(k, q, self.random)]))
        np.add.at(self.counts, states, counts)
        self.order = np.concatenate([self.order, states])

    def _fit(self) -> None:
        states = np.flatnonzero(self.asked)
        for _ in range(1 + (len(self.order) >= REFIT * self._fitted_at)):  # sites and kernel in turn
            codes = self.codes[states]
            K = covariances(self.parameters, codes, codes, 2).reshape(2 * [len(states)]) / LOGIT**2
            start = Sites(*(each[states] for each in self._sites)) if self._sites.precision.any() else None
            known = sites(K + NOISE * np.eye(len(K)), self.counts[states], start)
            for mine, new in zip(self._sites, known, strict=True):
                mine[states] = new
            some = known.precision > 0
            self._condition(states[some], known.z[some], 1 / known.precision[some])


def quantile(count: int, q: np.ndarray, random: np.random.Generator) -> float:
    """Error of a predicted count of `ANSWERS` in standard deviations, as of `Tails` if q has these values at the nodes.

    It is turned into its quantile, drawn within the chance of the count itself, and this into that of the tails.
    """
    q = np.clip(q, LEAST_CHANCE, 1 - LEAST_CHANCE)  # chances of counts overflow at 1e-308
    chances = binom.pmf(np.arange(ANSWERS + 1)[:, None], ANSWERS, q) @ WEIGHTS
    below = (chances[:count].sum() + random.random() * chances[count]) / chances.sum()
    return float(Tails().of(ndtri(np.clip(below, LEAST_CHANCE, 1 - LEAST_CHANCE))))
