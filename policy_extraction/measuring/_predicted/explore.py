"""The loop of a measurement of many words: predict, ask, and stop when the word shares are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.stats import binom, chi2, norm
from scipy.stats import t as student

from policy_extraction.measuring._active.tails import NORMAL, Tails, fitted_tails
from policy_extraction.measuring._predicted.kernel import CENTRE, Kernel
from policy_extraction.measuring._predicted.likelihood import add_noise, contrasts_of, fitted
from policy_extraction.measuring._predicted.memories import NONE, all_patterns, states_of
from policy_extraction.measuring._predicted.population import Game, Visited, visited, word_shares
from policy_extraction.measuring._predicted.posterior import Answered, Posterior, Prediction

Ask = Callable[[np.ndarray], np.ndarray]  # choice probabilities (n, W) in memories (n, H)

LEVEL = 0.95  # of intervals
RARE = 0.001  # chance at which so many answers outside their intervals count as a proof
FIRST = 12  # memories before the first fit
FIRST_BATCH, GROWTH = 4, 6  # a batch has a sixth of what was asked
CHOSEN = 4  # one of so many memories of a batch is chosen, the others are tests
TESTS = 59  # 0.95^59 < 0.05
REFIT = 1.25  # growth of the number of memories between fits
KERNELS = 8  # random ones beside the most likely one
DRAWS = 16  # policies, for the interval
SEEN_RUNS, SEEN_DRAWS = 20, 4  # games, and random policies beside the mean, in which memories are looked for
CANDIDATES = 4000  # contrasts of memories of which the variance is computed
MOVES = 5  # latest moves of the shares that count
FEWEST = 100  # games of a policy


class Shares(NamedTuple):
    """Word shares (W,) and half the widths (W,) of their intervals, infinite while the tests are few."""

    value: np.ndarray
    half: np.ndarray


def games_of(tolerance: float) -> int:
    """Games of a policy. Shares deviate by at most ½, so their noise has at most 0.36 of the tolerance as deviation."""
    return max(FEWEST, int(np.ceil(3 / tolerance**2)))


@dataclass
class Exploration:
    """A measurement of one policy of W words.

    Parameters
    ----------
    ask
        Gives choice probabilities of memories.
    game
        The population whose word shares at the end are to be known.
    tolerance
        Half the width of their intervals.
    seed
        Seed of everything random.
    """

    ask: Ask
    game: Game
    tolerance: float
    seed: int = 0

    parameters: np.ndarray = field(init=False)  # of kernels, the most likely one first, (1 + KERNELS, k)
    answered: Answered = field(init=False)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        none = np.empty((0, self.game.memory_length), dtype=np.int64)
        self.answered = Answered(none, np.empty((0, self.game.n_words)), all_patterns(self.game.memory_length))
        self.parameters, self._fitted_at = CENTRE[None], 0
        self.errors: list[np.ndarray] = []  # of tests, (W-1,) each, in their standard deviations
        self._moves: list[float] = []
        self._posteriors: dict[int, Posterior] = {}  # of these answers, by the number of the kernel
        self.whole = False  # whether every memory seen in games was asked

    @property
    def n_asked(self) -> int:
        """Number of memories asked."""
        return len(self.answered.codes)

    @property
    def posterior(self) -> Posterior:
        """The posterior of the most likely kernel."""
        return self._posterior(0)

    @property
    def tests(self) -> int:
        """Number of latest tests."""
        return len(self.errors[-TESTS:])

    @property
    def recent(self) -> np.ndarray:
        """Errors of the latest tests in their standard deviations, in a row."""
        return np.ravel(self.errors[-TESTS:])

    @property
    def tails(self) -> Tails:
        """The tails of these errors."""
        return fitted_tails(self.recent) if self.errors else NORMAL

    @property
    def scale(self) -> float:
        """How much wider the posterior has to be, for the tests to be inside its intervals."""
        return max(1.0, self.tails.quantile(LEVEL) / float(norm.ppf((1 + LEVEL) / 2)))

    @property
    def outside(self) -> int:
        """Number of latest tests outside the regions predicted for all their contrasts together."""
        sizes = [np.linalg.norm(each) for each in self.errors[-TESTS:]]
        return int((np.array(sizes) > self.scale * np.sqrt(chi2.ppf(LEVEL, self.game.n_words - 1))).sum())

    @property
    def holds(self) -> bool:
        """Whether so many outside are no proof against the model."""
        return bool(binom.sf(self.outside - 1, self.tests, 1 - LEVEL) >= RARE)

    def run(self, most: int) -> Iterator[Shares]:
        """Ask up to `most` memories; yields what is known after each batch, and ends when that is enough."""
        self._ask(self._first()[:most])
        before = None
        while True:
            self._fit()
            seen = self._seen()
            self.whole = not len(seen.codes)
            shares = self._shares()
            if before is not None:
                self._moves.append(self._move(before, shares))
            known = self._interval(*shares)
            yield known
            if self.n_asked >= most or self.enough(known):
                return
            before = shares if len(self.errors) >= TESTS else None
            self._batch(seen, min(max(FIRST_BATCH, self.n_asked // GROWTH), len(seen.codes), most - self.n_asked))

    def enough(self, known: Shares) -> bool:
        """Whether all shares are known as well as asked for, by a model that agrees with the tests."""
        return self.whole or (bool(self._moves) and self.holds and bool((known.half <= self.tolerance).all()))

    def draw(self, random: np.random.Generator) -> Prediction:
        """A random policy that agrees with the answers."""
        which = int(random.integers(1, len(self.parameters)))
        return self._posterior(which).draw(random, self.scale)

    def _first(self) -> np.ndarray:
        """The empty memory, memories of one word, and random ones."""
        W, H = self.game.n_words, self.game.memory_length
        codes = np.full((FIRST, H), NONE)
        words = self.random.permutation(W)[: FIRST // 2]
        codes[1 : 1 + len(words)] = (words * (W + 1))[:, None]
        for row in codes[1 + len(words) :]:
            length = self.random.integers(1, H + 1)
            row[:length] = self.random.integers(W**2, size=length)
        _, first = np.unique(states_of(codes, W), return_index=True)
        return codes[np.sort(first)]

    def _ask(self, codes: np.ndarray) -> None:
        q = self.ask(codes)
        old = self.answered
        self.answered = Answered(np.concatenate([old.codes, codes]), np.concatenate([old.q, q]), old.patterns)

    def _batch(self, seen: Visited, number: int) -> None:
        """Ask memories of those seen: one in four by visits and variance, the others by visits alone, as tests."""
        tests = self._some(seen.times, number - number // CHOSEN)
        rest = np.setdiff1d(np.arange(len(seen.times)), tests)
        if len(rest):
            rest = rest[self._some(seen.times[rest], CANDIDATES // self.game.n_words)]
            weights = seen.times[rest] * self.posterior.variances(seen.codes[rest])
            chosen = rest[self._some(weights, number // CHOSEN)]
        else:
            chosen = rest
        mean, covariance = self.posterior.predicted(seen.codes[tests])
        self._ask(seen.codes[np.concatenate([tests, chosen])])
        q = self.answered.q[self.n_asked - len(tests) - len(chosen) :][: len(tests)]
        y = contrasts_of(q)
        lower = np.linalg.cholesky(add_noise(covariance.reshape(*y.shape, *y.shape), q))
        self.errors += list(solve_triangular(lower, (y - mean).ravel(), lower=True).reshape(y.shape))

    def _some(self, weights: np.ndarray, number: int) -> np.ndarray:
        """Numbers drawn without replacement, with chances in proportion to positive weights."""
        return np.argsort(self.random.exponential(size=len(weights)) / weights)[:number]

    def _fit(self) -> None:
        self._posteriors.clear()
        if self.n_asked >= REFIT * self._fitted_at:
            a = self.answered
            self.parameters = fitted(a.codes, a.q, a.patterns, self.parameters[0], KERNELS, self.random)
            self._fitted_at = self.n_asked

    def _posterior(self, which: int) -> Posterior:
        if which not in self._posteriors:
            self._posteriors[which] = Posterior(Kernel.of(self.parameters[which]), self.answered)
        return self._posteriors[which]

    def _seen(self) -> Visited:
        """Memories that occur in games of the mean policy and of random ones, but those asked."""
        policies = [self.posterior.mean, *(self.draw(self.random) for _ in range(SEEN_DRAWS))]
        every = [visited(each, self.game, SEEN_RUNS, self.random) for each in policies]
        codes, times = (np.concatenate(each) for each in zip(*every, strict=True))
        states, first, back = np.unique(states_of(codes, self.game.n_words), return_index=True, return_inverse=True)
        new = ~np.isin(states, states_of(self.answered.codes, self.game.n_words))
        return Visited(codes[first[new]], np.bincount(back.reshape(-1), times)[new])

    def _shares(self) -> tuple[np.ndarray, np.ndarray]:
        """Shares (W,) of the mean policy, and their variances (W,): of the posterior, and of finitely many games.

        Without enough tests the variances are infinite, if not every memory was asked. Policies play with independent
        random numbers, so the noise of games is in their distances.
        """
        tested = len(self.errors) >= TESTS
        runs = games_of(self.tolerance) if tested or self.whole else FEWEST
        games = np.random.SeedSequence(int(self.random.integers(2**62))).spawn(1 + DRAWS)
        played = word_shares(self.posterior.mean, self.game, 2 * runs, np.random.default_rng(games[0]))
        value = played.mean(0)
        if self.whole:  # where all games ended alike, one in `runs` might not
            return value, (played.var(0) + 1 / runs) / runs
        if not tested:
            return value, np.full_like(value, np.inf)
        squares = []
        for each in games[1:]:
            drawn = word_shares(self.draw(self.random), self.game, runs, np.random.default_rng(each))
            squares.append((drawn.mean(0) - value) ** 2 + 1 / runs**2)
        return value, np.mean(squares, axis=0)

    def _move(self, before: tuple[np.ndarray, np.ndarray], now: tuple[np.ndarray, np.ndarray]) -> float:
        """The mean square of a move of the shares, relative to what was expected at most."""
        return float(((now[0] - before[0]) ** 2).sum() / (before[1] + now[1]).sum())

    def _interval(self, value: np.ndarray, variance: np.ndarray) -> Shares:
        widening = np.sqrt(max(1.0, np.mean(self._moves[-MOVES:]))) if self._moves else 1.0
        quantile = student.ppf((1 + LEVEL) / 2, KERNELS)  # draws of one kernel are not independent
        return Shares(value, quantile * widening * np.sqrt(variance))
