"""The loop of an active measurement: predict, ask, and stop when the goal is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.special import ndtr

from meanfield import MemorySpace, make_policy
from policy_extraction.measuring._active.audit import Audit, Draws, drawn_at_random
from policy_extraction.measuring._active.choice import expected_move, goal_variance, next_pairs, shares
from policy_extraction.measuring._active.features import Features, doubt, features, mirror_pairs
from policy_extraction.measuring._active.goals import NOTHING, Goal, Quantity
from policy_extraction.measuring._active.held_out import HeldOut
from policy_extraction.measuring._active.kernel import EVEN, ODD
from policy_extraction.measuring._active.known import Known, known_of
from policy_extraction.measuring._active.marginal_likelihood import CENTRE, Measured, drawn, fitted, kernel_of
from policy_extraction.measuring._active.moves import Moves
from policy_extraction.measuring._active.noisy import Joint
from policy_extraction.measuring._active.posterior import Both, Posterior, odd_even, probits
from policy_extraction.measuring._active.visits import visits

Ask = Callable[[np.ndarray], np.ndarray]  # choice probabilities (n, 2) in states (n,)
PARITIES = (ODD, EVEN)
FIRST = 16  # pairs of mirror images before the first fit
FIRST_BATCH, GROWTH = 4, 10  # a batch has a tenth of what was asked
MOST_PAIRS = 500  # of a batch; a choice takes the second power of time
TESTS = 2 / 3  # part of a batch that is drawn at random and tests the model
REFIT = 1.15  # growth of the number of measured pairs between fits
EXACT_DRAWS = 16
KERNELS = 6  # random ones beside the most likely one
LINEAR_DRAWS = 8  # what the variance to first order counts for beside them
NAMED_DRAWS = 60  # without κ, where κ is asked for; a chance of 5 % for κ would hide in 5 % of cases
SAME_DRAWS = 128  # that have to come to the same word, where there is no κ
CONFIDENCE = 0.99  # of the strong word
SMALL = 0.1  # of the tolerance: too small to matter
DRAWS = 25  # random pairs before the end, times the share of pairs that was not asked


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
    orders
        Number of prompts for a memory.
    """

    ask: Ask
    space: MemorySpace
    words: tuple[str, str]
    goal: Goal
    tolerance: float
    seed: int = 0
    orders: int = 1

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.pairs = mirror_pairs(self.space)
        self.every = features(self.space).at(self.pairs[:, 0])
        self.order = np.empty(0, dtype=int)  # the pairs asked, first ones first
        self.q = np.full((self.space.n_states, 2), np.nan)
        # Of both kernels, the most likely ones first, shape (1 + KERNELS, 2, k).
        self.parameters, self._fitted_at = np.array([[CENTRE[parity] for parity in PARITIES]]), 0
        self.held_out, self.audit, self.moves = HeldOut(), Audit(), Moves()
        self.posterior: Both  # of the most likely kernels, given the pairs asked

    answers = 1  # to a prompt at a time

    @property
    def n_asked(self) -> int:
        """Number of memories asked."""
        return int(self.asked.sum())

    @property
    def asked(self) -> np.ndarray:
        """Whether a memory was asked, shape (S,)."""
        return ~np.isnan(self.q[:, 0])

    @property
    def free(self) -> np.ndarray:
        """Whether a pair can be asked, shape (P,)."""
        return ~np.isin(np.arange(len(self.pairs)), self.order)

    @property
    def whole(self) -> bool:
        """Whether there is nothing left to ask."""
        return not self.free.any()

    @property
    def noise(self) -> np.ndarray | None:
        """Errors of a measurement, as in `next_pairs`."""
        return None

    def run(self, budget: int) -> Iterator[Known]:
        """Use up to `budget` prompts; yields what is known after each batch, and ends when that is enough.

        Memories are asked in pairs, so one of an even number may be left over.
        """
        yield from self._run((budget // self.orders + 1) // 2)  # the empty memory is a pair alone

    def _run(self, most: int) -> Iterator[Known]:
        self._measure(first_pairs(self.space, len(self.pairs), self.random)[:most])
        before, expected = NOTHING, np.nan
        while True:
            self._fit()
            best = self.best()
            quantity = self.goal.of(self._policy(best))
            if quantity.name == before.name and expected > 0:
                # What is too small to matter is in both, so that it is no evidence of small errors.
                self.moves.add(float(np.hypot(quantity.value - before.value, self._small(before))), expected)
            known, derivatives = self._known(quantity)
            yield known
            if self.whole or len(self.order) >= most or self.enough(known):
                return
            number = min(max(FIRST_BATCH, len(self.order) // GROWTH), MOST_PAIRS, most - len(self.order))
            seen = self._paired(visits(best, self.space))
            weights = self._weights(derivatives) if derivatives.any() else seen.sum(1)
            tests, chances = self._drawn_at_random(weights, round(TESTS * number))
            batch = next_pairs(
                self.posterior, derivatives, seen, self.free, number, tests.tolist(), self.held_out.tails, self.noise
            )
            before, expected = quantity, self._expected(quantity, derivatives, batch)
            frequencies = self._measure(batch, len(tests))
            self.audit.add(Draws(tests, chances, best[self.pairs, 0], frequencies, self.answers))

    @property
    def used(self) -> int:
        """Number of prompts."""
        return self.n_asked * self.orders

    def enough(self, known: Known) -> bool:
        """Whether the goal is known as well as asked for, by a model that was tested and agrees with the tests."""
        if not (known.exact and known.drawn and known.agrees and self.held_out.passed):
            return False
        if self.goal.name == "strong word":
            return known.confidence >= CONFIDENCE
        value = known.quantity.value
        return max(known.high - value, value - known.low) <= self._allowed(known.quantity)

    def _allowed(self, quantity: Quantity) -> float:
        """Half the width of the interval that is asked for."""
        value = quantity.value
        return self.tolerance * (max(value, 1 - value) if quantity.name == "word_share" else abs(value))

    def _small(self, quantity: Quantity) -> float:
        """A standard deviation that is too small to matter, though not to rounding."""
        return SMALL * self._allowed(quantity)

    def best(self) -> np.ndarray:
        """The posterior median of the choice probabilities (S, 2), with the measured ones as they are."""
        return self._choices(self.posterior.median())

    def _choices(self, z: np.ndarray) -> np.ndarray:
        """Choice probabilities (S, 2) from probits (P, 2), but the measured ones where they were asked."""
        return choices(z, self.pairs, self.asked, self.q)

    def _paired(self, values: np.ndarray) -> np.ndarray:
        """Values (…, P, 2) of pairs from those (…, S) of memories, of which the empty one counts once."""
        paired = values[..., self.pairs]
        paired[..., 0, 1] = 0
        return paired

    def _drawn_at_random(self, weights: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Pairs for tests, and their chances."""
        return drawn_at_random(weights, ~self.free, number, self.random)

    def _measure(self, asked: np.ndarray, n_tests: int = 0) -> np.ndarray | None:
        """Ask pairs, of which the first are tests of the model; returns the frequencies of `Draws` for them."""
        states = np.unique(self.pairs[asked])
        self.q[states] = self.ask(states)
        if n_tests:
            tests = asked[:n_tests]
            for errors, part, z in zip(self.held_out.parts, self.posterior, self._parts(tests), strict=True):
                errors.add(z - part.mean[tests], part.columns(tests)[tests])
        self.order = np.concatenate([self.order, asked])

    def _parts(self, asked: np.ndarray) -> np.ndarray:
        """Odd and even parts (2, n) of measured pairs."""
        return odd_even(probits(self.q[self.pairs[asked]]))

    def _fit(self) -> None:
        parts = self._parts(self.order)
        if len(self.order) >= REFIT * self._fitted_at:
            at = self.every.at(self.order)._replace(doubt=doubt(parts[0]))
            self._fit_kernels([Measured(at, part) for part in parts])
        self.posterior = self._posterior(self.parameters[0])

    def _posterior(self, parameters: np.ndarray) -> Joint:
        return posterior_of(parameters, self.every, self.order, self._parts(self.order))

    def _fit_kernels(self, measured: Sequence[Measured]) -> None:
        """Take the parameters that fit these two parts, and random ones."""
        every = []
        for part, parity, start in zip(measured, PARITIES, self.parameters[0], strict=True):
            best = fitted(part, parity, start, self.seed)
            every.append([best, *drawn(part, parity, best, KERNELS, self.random)])
        self.parameters, self._fitted_at = np.stack(every, axis=1), len(self.order)

    def _variance(self, slopes: np.ndarray) -> float:
        """The mean square of a goal with these derivatives (S,) around its value, to first order in q."""
        paired, best, tails = self._paired(slopes), self.best()[:, 0], self.held_out.tails
        squares = []
        for each in map(self._posterior, self.parameters):
            away = slopes @ (self._choices(each.median())[:, 0] - best)
            squares.append(goal_variance(each, paired, tails, away))
        return float(np.mean(squares))

    def _weights(self, derivatives: np.ndarray) -> np.ndarray:
        """Weights (P,) of random pairs: half by what is not known of each, half whatever the model says it knows."""
        total = np.zeros(len(self.pairs))
        for each in derivatives:
            for size in (shares(self.posterior, each, self.held_out.tails), np.abs(each).sum(1)):
                left = np.where(self.free, size, 0.0)
                total += left / max(left.sum(), np.finfo(float).tiny)
        return total

    def _expected(self, quantity: Quantity, derivatives: np.ndarray, batch: np.ndarray) -> float:
        """The standard deviation of the quantity's move by a batch; NaN if it is not known."""
        if not len(derivatives):
            return np.nan
        variance = expected_move(self.posterior, derivatives[0], batch, self.held_out.tails, self.noise)
        return float(np.hypot(np.sqrt(variance), self._small(quantity)))

    def _interval(self, quantity: Quantity, variance: float, draws: float, same: float, exact: bool) -> Known:
        """Interval of a quantity with this variance by so many draws, wider or narrower as its moves tell."""
        spread = np.hypot(np.sqrt(variance), self._small(quantity)) * self.moves.widening
        # Untested tails are guesses: errors of a goal of seven standard deviations were seen.
        enough = self.moves.every and self.held_out.tested
        freedom = 1 / (1 / self.moves.freedom + 1 / draws) if enough else 0.0
        return known_of(quantity, spread, freedom, same, exact)

    def _known(self, quantity: Quantity) -> tuple[Known, np.ndarray]:
        """Knowledge of the goal, and derivatives (k, P, 2) that say where to ask."""
        none = np.empty((0, *self.pairs.shape))
        if self.whole:
            return Known(quantity, quantity.value, quantity.value, 1.0, True, quantity.value, quantity.value), none
        if not quantity.name:
            return Known(quantity, np.nan, np.nan, 0.0, False), none
        slopes = self.goal.derivatives(self._policy(self.best()), quantity)
        derivatives, variance, drawn = none, None, (-np.inf, np.inf)
        if slopes is not None:
            derivatives = self._paired(slopes[None])
            variance = self._variance(slopes)
            drawn = self._drawn(quantity, derivatives[0])
            linear = self._interval(quantity, variance, np.inf, 1.0, False).by_draws(drawn)
            if not self.enough(linear._replace(exact=True)):
                return linear._replace(confidence=np.nan), derivatives  # of no draw
        known, last, found = self._confirmed(quantity, variance, drawn)
        if not self.enough(known):
            # The draw that was too far off shows what else matters.
            more = self.goal.derivatives(last, found)
            derivatives = derivatives if more is None else np.stack([*derivatives, self._paired(more)])
        return known, derivatives

    def _drawn(self, quantity: Quantity, derivatives: np.ndarray) -> tuple[float, float]:
        """Bounds of the quantity by the random memories alone; infinite while these are few."""
        if self.audit.number < DRAWS * self.free.mean():
            return -np.inf, np.inf
        error, half = self.audit.error(derivatives, self.best()[self.pairs, 0])
        half += self._small(quantity)
        return quantity.value + error - half, quantity.value + error + half

    def _confirmed(
        self, quantity: Quantity, variance: float | None, drawn: tuple[float, float]
    ) -> tuple[Known, xr.Dataset, Quantity]:
        """Knowledge of a quantity from draws of the posterior, up to the first after which it is not known well enough.

        `variance` is the quantity's to first order, which counts as some draws, and `drawn` are its bounds by random
        memories. Returns the last draw, and its quantity, too.
        """
        instead = {"kappa": NAMED_DRAWS, "strong word": SAME_DRAWS} if quantity.name != "kappa" else {}
        most = instead.get(self.goal.name, EXACT_DRAWS)
        tails = self.held_out.tails
        squares, same, before = (0.0, 0, 0) if variance is None else (LINEAR_DRAWS * variance, 0, LINEAR_DRAWS)

        def known(n: int, same: int) -> Known:
            # κ tells how far the word is from changing; otherwise draws are counted, by Laplace's rule of succession.
            sure = same / n if quantity.name == "kappa" else (same + 1) / (n + 2)
            return self._interval(quantity, squares / (n + before), n + before, sure, True).by_draws(drawn)

        n = 0
        while True:
            n += 1
            some = self._posterior(self.random.choice(self.parameters))
            policy = self._policy(self._choices(some.draw(self.random, tails)))
            found = self.goal.of(policy, quantity.name)
            squares += (found.value - quantity.value) ** 2 if found.name == quantity.name else np.nan
            same += found.strong == quantity.strong
            if n == most or not self.enough(known(most, same + most - n)):  # if all others were exact
                return known(n, same), policy, found

    def _policy(self, q: np.ndarray) -> xr.Dataset:
        return make_policy(q, self.words)


def posterior_of(parameters: Sequence[np.ndarray], every: Features, asked: np.ndarray, parts: np.ndarray) -> Both:
    """The posterior with these parameters of both kernels, given parts (2, m) of the pairs asked."""
    kernels = [kernel_of(each, parity) for each, parity in zip(parameters, PARITIES, strict=True)]
    odd = Posterior(kernels[0], every, asked, parts[0])
    even = Posterior(kernels[1], every._replace(doubt=doubt(odd.mean, odd.variance)), asked, parts[1])
    return Both(odd, even)


def choices(z: np.ndarray, pairs: np.ndarray, asked: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Choice probabilities (S, 2) from probits (P, 2) of pairs, but q (S, 2) where memories were asked (S,)."""
    every = np.empty((len(asked), 2))
    for states, each in zip(pairs.T, z.T, strict=True):
        every[states] = np.stack([ndtr(each), ndtr(-each)], axis=1)
    every[asked] = q[asked]
    return every


def first_pairs(space: MemorySpace, n_pairs: int, random: np.random.Generator) -> np.ndarray:
    """Numbers of the first pairs: the shortest, those of one habit at each length, and random ones."""
    # Blocks of lengths are halves, so pair numbers are those of memories less the mirror images of shorter ones.
    habits = [
        1 + (space.offset(h) - 1) // 2 + sum((2 * own + partner) * 4**age for age in range(h))
        for h in range(1, space.memory_length + 1)
        for own, partner in ((0, 0), (0, 1))
    ]
    chosen = np.array([0, *habits], dtype=int)
    others = np.setdiff1d(np.arange(n_pairs), chosen)
    number = max(0, min(FIRST - len(chosen), len(others)))
    return np.concatenate([chosen, random.choice(others, number, replace=False)])
