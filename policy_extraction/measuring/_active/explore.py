"""Measurements of two words: the memories are chosen for a goal, until it is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import t as student

from meanfield import MemorySpace, make_policy
from policy_extraction.measuring._active.choice import ABOUT, Candidates, moments, visits
from policy_extraction.measuring._active.goals import NOTHING, Goal, Quantity
from policy_extraction.measuring._doubt import Tails
from policy_extraction.measuring._exploration import LEAST, Batch, Exploration
from policy_extraction.measuring._gaussian_process import NOISE
from policy_extraction.measuring._memories import all_codes

LOGIT = 1.2  # contrasts are about as large as for logits: 1.7/√2 times probits
FIRST = 32  # memories before the first fit
TESTS = 0.4  # part of a batch that is drawn at random and tests the model
LEAST_TESTS = 16  # before an interval
CANDIDATES = 1024  # memories whose covariances count
DRAWS = 8  # policies at the end
SHARE_DRAWS, SAME_DRAWS = 32, 98  # for a share and for its word: all alike tell them with confidences of 97 and 99 %
LINEAR_DRAWS = 8  # what the variance to first order counts for beside them
FREEDOM = 10  # of intervals by many draws: widths are estimates
CONFIDENCE = 0.99  # of the strong word
SMALL = 0.1  # of the tolerance: too small to matter


class Known(NamedTuple):
    """Value, interval and doubt of a goal."""

    quantity: Quantity
    low: float
    high: float
    confidence: float  # probability that the strong word is the one named, NaN without draws
    exact: bool  # whether draws of the posterior were analysed, or only their differences to first order


@dataclass
class GoalExploration(Exploration[Known]):
    """A measurement by choice probabilities, for a goal.

    The tolerance is half the width of the goal's interval, relative to its value, for word shares to the larger share.
    For the strong word only the confidence counts.
    """

    space: MemorySpace
    words: tuple[str, str]
    goal: Goal

    first_batch, most_batch, growth = 8, 500, 7
    once = True  # whether memories are asked once, and then known

    def __post_init__(self) -> None:
        super().__post_init__()
        self.codes = all_codes(self.space.memory_length)
        self.q = np.full((self.space.n_states, 2), np.nan)
        self.order = np.empty(0, dtype=int)  # the memories asked, first ones first
        self._before = NOTHING, 0.0  # the goal before a batch, and the expected variance of its move
        self.mean: np.ndarray  # of the probits of all memories
        self.variance: np.ndarray

    @property
    def asked(self) -> np.ndarray:
        """Whether a memory was asked, shape (S,)."""
        return np.isin(np.arange(self.space.n_states), self.order)

    @property
    def known(self) -> np.ndarray:
        """Whether the policy is known exactly in a memory, shape (S,)."""
        return self.asked if self.once else np.zeros(self.space.n_states, dtype=bool)

    @property
    def noise(self) -> np.ndarray:
        """Variances (S,) of the probits' errors after a further measurement."""
        return np.full(self.space.n_states, NOISE)

    def _look(self, number: int) -> tuple[Known, Callable[[], Batch] | None]:
        policy = make_policy(self.best(), self.words)
        quantity, (before, expected) = self.goal.of(policy), self._before
        if quantity.name == before.name and expected > 0:
            # Negligible moves are in both, so that they are no evidence of small errors.
            small = (SMALL * self._allowed(before)) ** 2
            self.doubt.moves.append(((quantity.value - before.value) ** 2 + small) / (expected + small))
        self.whole = bool(self.known.all())
        if self.whole:
            return Known(quantity, quantity.value, quantity.value, 1.0, True), None
        number = min(number, int((~self.known).sum())) if self.once else number
        n_tests = round(TESTS * number)
        candidates = self._candidates(self.goal.derivatives(policy, quantity), n_tests)

        def batch() -> Batch:
            noise = self.noise[candidates.states]
            chosen = candidates.next(number, noise, n_tests, self.once)
            self._before = quantity, candidates.told(chosen, noise)
            return candidates.states[chosen], n_tests

        return self._known(quantity, candidates), batch

    def enough(self, known: Known) -> bool:
        """Whether the goal is known as well as asked for, by a model that was tested and agrees with the tests."""
        if not (known.exact and self.doubt.holds):
            return False
        if self.goal.name == "strong word":
            return known.confidence >= CONFIDENCE
        value = known.quantity.value
        return max(known.high - value, value - known.low) <= self._allowed(known.quantity)

    def _allowed(self, quantity: Quantity) -> float:
        """Half the width of the interval that is asked for."""
        value = quantity.value
        return self.tolerance * (max(value, 1 - value) if quantity.name == "word_share" else abs(value))

    def best(self) -> np.ndarray:
        """The posterior median of the choice probabilities (S, 2), with the measured ones as they are."""
        return self._choices(self.mean)

    def _choices(self, z: np.ndarray) -> np.ndarray:
        return np.where(self.known[:, None], self.q, ndtr(np.stack([z, -z], axis=1)))

    def draw(self, random: np.random.Generator, tails: Tails) -> np.ndarray:
        """Choice probabilities (S, 2) of a random policy that agrees with the answers, of errors with these tails.

        Memories stay as dependent on each other as the Gaussian says.
        """
        deviation = np.sqrt(self.variance)
        z = self.posterior.draw(random).contrasts(self.codes)[:, 0] / LOGIT
        return self._choices(self.mean + deviation * tails.of((z - self.mean) / deviation))

    def _first(self) -> np.ndarray:
        """The shortest memories, memories of one habit at each length, and random ones."""
        n_states = self.space.n_states
        habits = [
            self.space.offset(h) + digit * (4**h - 1) // 3
            for h in range(1, self.space.memory_length + 1)
            for digit in range(4)
        ]
        others = np.setdiff1d(np.arange(n_states), [0, *habits])
        more = self.random.choice(others, min(len(others), max(0, FIRST - len(habits) - 1)), replace=False)
        return np.concatenate([[0], habits, more])[:n_states].astype(int)

    def _measure(self, memories: np.ndarray, n_tests: int) -> None:
        self.q[memories] = self.ask(memories)
        if n_tests:
            tests = memories[:n_tests]
            covariance = self.posterior.covariance(self.codes[tests]) / LOGIT**2 + NOISE * np.eye(n_tests)
            self.doubt.test((probits(self.q[tests]) - self.mean[tests])[:, None], covariance)
        self.order = np.concatenate([self.order, memories])

    def _fit(self) -> None:
        self._take(self.order, probits(self.q[self.order]), np.zeros(len(self.order)))

    def _take(self, states: np.ndarray, z: np.ndarray, errors: np.ndarray) -> None:
        """Take the posterior given probits (n,) with errors of these variances (n,)."""
        self._condition(self.codes[states], LOGIT * z[:, None], LOGIT**2 * errors[:, None, None])
        self.mean = self.posterior.mean.contrasts(self.codes)[:, 0] / LOGIT
        self.variance = self.posterior.variances(self.codes)[:, 0] / LOGIT**2

    def _candidates(self, slopes: np.ndarray | None, n_tests: int) -> Candidates:
        """Tests, and memories that matter for a goal with these slopes (S,) or are visited and uncertain.

        Tests are drawn half by |slope| times standard deviation, half by |slope| or visits alone.
        """
        slope, rest = moments(self.mean, self.variance, self.doubt.tails)
        spread = np.where(self.known, 0.0, slope**2 * self.variance + rest)
        seen = visits(self.best(), self.space)
        about, g = seen**2 * spread, np.zeros(self.space.n_states) if slopes is None else slopes
        weights = _shares(np.sqrt(g**2 * spread)) + _shares(np.where(self.known, 0, seen if slopes is None else abs(g)))
        times = self.random.exponential(size=len(weights)) / (weights + LEAST)
        tests = np.argsort(np.where(self.known, np.inf, times))[:n_tests]
        others = np.argsort(-_shares(g**2 * spread) - ABOUT * _shares(about))
        others = others[~self.known[others] & ~np.isin(others, tests)]
        states = np.concatenate([tests, others])[:CANDIDATES]
        covariance = self.posterior.covariance(self.codes[states]) / LOGIT**2
        covariance[np.diag_indices(len(states))] += NOISE
        return Candidates(states, covariance, (g * slope)[states], (g**2 * rest)[states], about[states])

    def _known(self, quantity: Quantity, candidates: Candidates) -> Known:
        """Knowledge of the goal: to first order, and if that is enough from draws of the posterior.

        They end at the first after which it is not known well enough. The variance to first order counts as draws, too.
        """
        if not quantity.name or len(self.doubt.errors) < LEAST_TESTS:
            return Known(quantity, np.nan, np.nan, np.nan, False)
        before, squares, same, n = 0, 0.0, 0, 0
        if candidates.linear.any():
            linear = self._interval(quantity, candidates.variance, np.inf, 1.0)
            if not self.enough(linear):
                return linear._replace(confidence=np.nan, exact=False)
            before, squares = LINEAR_DRAWS, LINEAR_DRAWS * candidates.variance
        most = DRAWS
        if quantity.name == "word_share":
            most = SAME_DRAWS if self.goal.name == "strong word" else SHARE_DRAWS

        def known(n: int, same: int) -> Known:
            # Where κ does not tell of the word draws count, by Laplace's rule of succession.
            sure = same / n if quantity.name == "kappa" else (same + 1) / (n + 2)
            return self._interval(quantity, squares / (n + before), n + before, sure)

        while n == 0 or (n < most and self.enough(known(most, same + most - n))):  # if all others were exact
            n += 1
            found = self.goal.of(make_policy(self.draw(self.random, self.doubt.tails), self.words), quantity.name)
            squares += (found.value - quantity.value) ** 2 if found.name == quantity.name else np.nan
            same += found.strong == quantity.strong
        return known(n, same)

    def _interval(self, quantity: Quantity, variance: float, draws: float, same: float) -> Known:
        """Interval of a quantity with this variance by so many draws; `same` is the probability of the same word."""
        # A deviation that is too small to matter, though not to rounding, is always there.
        spread = np.hypot(np.sqrt(variance), SMALL * self._allowed(quantity))
        freedom = 1 / (1 / draws + 1 / FREEDOM)
        half = self.doubt.half(spread, freedom)
        low, high = quantity.value - half, quantity.value + half
        if quantity.name == "word_share":
            low, high = max(low, 0.0), min(high, 1.0)
        if quantity.name == "kappa":  # it tells how far the word is from changing
            same *= float(student.cdf(abs(quantity.value) / (spread * self.doubt.widening), freedom))
        return Known(quantity, float(low), float(high), float(same), True)


def _shares(sizes: np.ndarray) -> np.ndarray:
    """Sizes as parts of their sum; 0 if all are."""
    return sizes / max(sizes.sum(), np.finfo(float).tiny)


def probits(q: np.ndarray) -> np.ndarray:
    """Φ⁻¹ of the first word's probability, from rows (…, 2) that keep both words' digits."""
    first, second = np.moveaxis(ndtri(np.clip(q, LEAST, 0.5)), -1, 0)
    return np.where(q[..., 0] <= q[..., 1], first, -second)
