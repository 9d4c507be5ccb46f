"""The loop of an active measurement: predict, ask, and stop when the goal is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.special import ndtr

from meanfield import MemorySpace, make_policy
from policy_extraction.measuring._active.choice import goal_variance, next_memories
from policy_extraction.measuring._active.features import features
from policy_extraction.measuring._active.goals import Goal, Quantity
from policy_extraction.measuring._active.held_out import HeldOut
from policy_extraction.measuring._active.known import Known, known_of
from policy_extraction.measuring._active.marginal_likelihood import CENTRE, fitted, kernel_of
from policy_extraction.measuring._active.posterior import Posterior, probits
from policy_extraction.measuring._active.visits import visits

Ask = Callable[[np.ndarray], np.ndarray]  # choice probabilities (n, 2) in states (n,)
FIRST = 32  # memories before the first fit
FIRST_BATCH, GROWTH = 8, 6  # a batch has a sixth of what was asked
TESTS = 2  # one of so many memories of a batch tests the model
REFIT = 1.15  # growth of the number of measured memories between fits
EXACT_DRAWS = 16
LINEAR_DRAWS = 8  # what the variance to first order counts for beside them
SAME_DRAWS = 128  # that have to come to the same word, where there is no κ
CONFIDENCE = 0.99  # of the strong word


@dataclass
class Exploration:
    """An active measurement of one policy of two words.

    Parameters
    ----------
    ask
        Gives choice probabilities of memories.
    space
        The memories.
    words
        The two words.
    goal
        What is to be known.
    tolerance
        Half the width of the goal's interval, relative to its value, for word shares to the larger share. For the
        strong word only the confidence counts.
    seed
        Seed of the first memories and of draws.
    """

    ask: Ask
    space: MemorySpace
    words: tuple[str, str]
    goal: Goal
    tolerance: float
    seed: int = 0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.every = features(self.space)
        self.order = np.empty(0, dtype=int)  # the memories asked, first ones first
        self.q = np.full((self.space.n_states, 2), np.nan)
        self.parameters, self._fitted_at = CENTRE, 0
        self.held_out = HeldOut()
        self.posterior: Posterior  # given the memories asked

    @property
    def asked(self) -> np.ndarray:
        """Whether a memory was asked, shape (S,)."""
        return np.isin(np.arange(self.space.n_states), self.order)

    def run(self, budget: int) -> Iterator[Known]:
        """Ask up to `budget` memories; yields what is known after each batch, and ends when that is enough."""
        self._measure(first_memories(self.space, self.random)[:budget])
        while True:
            whole = len(self.order) == self.space.n_states
            self._fit()
            known, derivatives = self._known(whole)
            yield known
            if whole or len(self.order) >= budget or self.enough(known):
                return
            number = min(max(FIRST_BATCH, len(self.order) // GROWTH), budget - len(self.order), (~self.asked).sum())
            seen, asked = visits(self.best(), self.space), self.asked
            weights = np.abs(derivatives).sum(0) if derivatives.any() else seen
            tests = at_random(weights, asked, max(1, number // TESTS), self.random)
            batch = next_memories(self.posterior, derivatives, seen, asked, number, tests.tolist(), self.held_out.tails)
            self._measure(batch, len(tests))

    def enough(self, known: Known) -> bool:
        """Whether the goal is known as well as asked for, by a model that was tested."""
        if not (known.exact and self.held_out.passed):
            return False
        if self.goal.name == "strong word":
            return known.confidence >= CONFIDENCE
        value = known.quantity.value
        scale = max(value, 1 - value) if known.quantity.name == "word_share" else abs(value)
        return max(known.high - value, value - known.low) <= self.tolerance * scale

    def best(self) -> np.ndarray:
        """The posterior median of the choice probabilities (S, 2), with the measured ones as they are."""
        return choices(self.posterior.mean, *self._answers())

    def _answers(self) -> tuple[np.ndarray, np.ndarray]:
        return self.order, self.q[self.order]

    def _measure(self, states: np.ndarray, n_tests: int = 0) -> None:
        """Ask memories, of which the first are tests of the model."""
        measured = self.ask(states)
        if n_tests:
            tests = states[:n_tests]
            errors = probits(measured[:n_tests]) - self.posterior.mean[tests]
            self.held_out.add(errors, self.posterior.columns(tests)[tests])
        self.q[states] = measured
        self.order = np.concatenate([self.order, states])

    def _fit(self) -> None:
        z = probits(self.q[self.order])
        if len(self.order) >= REFIT * self._fitted_at:
            self.parameters = fitted(self.every.at(self.order), z, self.parameters, self.seed)
            self._fitted_at = len(self.order)
        self.posterior = Posterior(kernel_of(self.parameters), self.every, self.order, z)

    def _known(self, whole: bool) -> tuple[Known, np.ndarray]:
        """What is known of the goal, and derivatives (k, S) that say where to ask."""
        best = self.best()
        quantity = self.goal.of(self._policy(best))
        none = np.empty((0, self.space.n_states))
        if whole:
            return Known(quantity, quantity.value, quantity.value, 1.0, True), none
        if not quantity.name:
            return Known(quantity, np.nan, np.nan, 0.0, False), none
        slopes = self.goal.derivatives(self._policy(best), quantity)
        derivatives, variance = none, None
        if slopes is not None:
            derivatives = slopes[None]
            variance = goal_variance(self.posterior, slopes, self.held_out.tails)
            linear = known_of(quantity, np.sqrt(variance), np.inf, 1.0, False)
            if not self.enough(linear._replace(exact=True)):
                return linear, derivatives
        known, last, found = self._confirmed(quantity, variance)
        if not self.enough(known):
            # The draw that was too far off shows what else matters.
            more = self.goal.derivatives(last, found)
            derivatives = derivatives if more is None else np.stack([*derivatives, more])
        return known, derivatives

    def _confirmed(self, quantity: Quantity, variance: float | None) -> tuple[Known, xr.Dataset, Quantity]:
        """What draws of the posterior say of a quantity, up to the first after which it is not known well enough.

        `variance` is the quantity's to first order, which counts as some draws. Returns the last draw, and its
        quantity, too.
        """
        most = SAME_DRAWS if self.goal.name == "strong word" and quantity.name != "kappa" else EXACT_DRAWS
        tails = self.held_out.tails
        squares, same, before = (0.0, 0, 0) if variance is None else (LINEAR_DRAWS * variance, 0, LINEAR_DRAWS)

        def known(n: int, same: int) -> Known:
            # κ tells how far the word is from changing; otherwise draws are counted, by Laplace's rule of succession.
            sure = same / n if quantity.name == "kappa" else (same + 1) / (n + 2)
            return known_of(quantity, np.sqrt(squares / (n + before)), n + before, sure, True)

        n = 0
        while True:
            n += 1
            policy = self._policy(choices(self.posterior.draw(self.random, tails), *self._answers()))
            found = self.goal.of(policy, quantity.name)
            squares += (found.value - quantity.value) ** 2 if found.name == quantity.name else np.nan
            same += found.strong == quantity.strong
            if n == most or not self.enough(known(most, same + most - n)):  # if all others were as expected
                return known(n, same), policy, found

    def _policy(self, q: np.ndarray) -> xr.Dataset:
        return make_policy(q, self.words)


def choices(z: np.ndarray, asked: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Choice probabilities (S, 2) from probits (S,), but the measured ones q (m, 2) where they were asked."""
    every = np.stack([ndtr(z), ndtr(-z)], axis=1)
    every[asked] = q
    return every


def at_random(weights: np.ndarray, asked: np.ndarray, number: int, random: np.random.Generator) -> np.ndarray:
    """Numbers of memories that were not asked, drawn without replacement with chances in proportion to weights (S,)."""
    left = np.flatnonzero(~asked)
    chance = weights[left] + max(1e-9 * weights.max(), np.finfo(float).tiny)
    return random.choice(left, number, replace=False, p=chance / chance.sum())


def first_memories(space: MemorySpace, random: np.random.Generator) -> np.ndarray:
    """Numbers of the first memories: the shortest, those of one habit at each length, and random ones."""
    habits = [space.state([pair] * h) for h in range(2, space.memory_length + 1) for pair in np.ndindex(2, 2)]
    chosen = np.array([*range(5), *habits], dtype=int)
    others = np.setdiff1d(np.arange(space.n_states), chosen)
    number = max(0, min(FIRST - len(chosen), len(others)))
    return np.concatenate([chosen, random.choice(others, number, replace=False)])
