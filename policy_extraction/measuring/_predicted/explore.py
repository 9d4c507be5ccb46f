"""The loop of a measurement of many words: predict, ask, and stop when the word shares are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import softmax

from policy_extraction.measuring._doubt import Doubt
from policy_extraction.measuring._gaussian_process import CENTRE, Function, Posterior, basis, fitted, with_errors
from policy_extraction.measuring._memories import NONE, states_of
from policy_extraction.measuring._predicted import population
from policy_extraction.measuring._predicted.population import Game, Visited, visited, word_shares

Ask = Callable[[np.ndarray], np.ndarray]  # choice probabilities (n, W) in memories (n, H)

LEAST = 1e-6  # probability of a word
CUT = 1.0  # variance of the log-probability of a word below it: differences of such words say nothing
FIRST = 12  # memories before the first fit
FIRST_BATCH, GROWTH = 4, 6  # a batch has a sixth of what was asked
CHOSEN = 4  # one of so many memories of a batch is chosen, the others are tests
TESTS = 59  # 0.95^59 < 0.05
REFIT = 1.25  # growth of the number of memories between fits
DRAWS = 16  # policies, for the interval
SEEN_RUNS, SEEN_DRAWS = 20, 4  # games, and random policies beside the mean, in which memories are looked for
CANDIDATES = 4000  # contrasts of memories of which the variance is computed
FEWEST = 100  # games of a policy


class Shares(NamedTuple):
    """Word shares (W,) and half the widths (W,) of their intervals, infinite while the tests are few."""

    value: np.ndarray
    half: np.ndarray


class Answered(NamedTuple):
    """Memories asked: rows of codes (n, H), and choice probabilities (n, W)."""

    codes: np.ndarray
    q: np.ndarray

    @property
    def y(self) -> np.ndarray:
        """Contrasts (n, W-1) of log-probabilities."""
        return contrasts_of(self.q)

    @property
    def errors(self) -> np.ndarray:
        """Covariances (n, W-1, W-1) of their errors."""
        return errors_of(self.q)

    def policy(self, function: Function) -> population.Function:
        """The policy of these logits, with the answers where memories were asked."""
        n_words = self.q.shape[1]
        states = states_of(self.codes, n_words)
        order = np.argsort(states)

        def q(codes: np.ndarray) -> np.ndarray:
            found, asked = softmax(function(codes), axis=1), states_of(codes, n_words)
            place = order[np.minimum(np.searchsorted(states, asked, sorter=order), len(order) - 1)]
            return np.where((states[place] == asked)[:, None], self.q[place], found)

        return q


def contrasts_of(q: np.ndarray) -> np.ndarray:
    """Contrasts (…, W-1) of log-probabilities."""
    return np.log(np.maximum(q, LEAST)) @ basis(q.shape[-1])


def errors_of(q: np.ndarray) -> np.ndarray:
    """Covariances (n, W-1, W-1) of the errors of contrasts."""
    Q = basis(q.shape[1])
    return np.einsum("wc,nw,wd->ncd", Q, np.where(q <= LEAST, CUT, 0.0), Q)


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

    doubt: Doubt = field(init=False, default_factory=Doubt)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        none = np.empty((0, self.game.memory_length), dtype=np.int64)
        self.answered = Answered(none, np.empty((0, self.game.n_words)))
        self.parameters, self._fitted_at = CENTRE, 0
        self.posterior: Posterior
        self.whole = False  # whether every memory seen in games was asked

    @property
    def n_asked(self) -> int:
        """Number of memories asked."""
        return len(self.answered.codes)

    @property
    def tested(self) -> bool:
        """Whether there are enough tests for intervals."""
        return len(self.doubt.errors) >= TESTS

    @property
    def mean(self) -> population.Function:
        """The policy of the posterior mean."""
        return self.answered.policy(self.posterior.mean)

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
                # The mean square of a move, relative to what was expected at most.
                squares = (shares[0] - before[0]) ** 2
                self.doubt.moves.append(float(squares.sum() / (before[1] + shares[1]).sum()))
            known = Shares(shares[0], self.doubt.half(np.sqrt(shares[1]), DRAWS))
            yield known
            if self.n_asked >= most or self.enough(known):
                return
            before = shares if self.tested else None
            self._batch(seen, min(max(FIRST_BATCH, self.n_asked // GROWTH), len(seen.codes), most - self.n_asked))

    def enough(self, known: Shares) -> bool:
        """Whether all shares are known as well as asked for, by a model that agrees with the tests."""
        doubt = self.doubt
        return self.whole or (bool(doubt.moves) and doubt.holds and bool((known.half <= self.tolerance).all()))

    def draw(self, random: np.random.Generator) -> population.Function:
        """A random policy that agrees with the answers."""
        return self.answered.policy(self.posterior.draw(random, self.doubt.scale))

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
        self.answered = Answered(np.concatenate([old.codes, codes]), np.concatenate([old.q, q]))

    def _batch(self, seen: Visited, number: int) -> None:
        """Ask memories of those seen: one in four by visits and variance, the others by visits alone, as tests."""
        tests = self._some(seen.times, number - number // CHOSEN)
        rest = np.setdiff1d(np.arange(len(seen.times)), tests)
        if len(rest):
            rest = rest[self._some(seen.times[rest], CANDIDATES // self.game.n_words)]
            weights = seen.times[rest] * self.posterior.variances(seen.codes[rest]).mean(1)
            chosen = rest[self._some(weights, number // CHOSEN)]
        else:
            chosen = rest
        mean, covariance = (f(seen.codes[tests]) for f in (self.posterior.mean.contrasts, self.posterior.covariance))
        self._ask(seen.codes[np.concatenate([tests, chosen])])
        q = self.answered.q[self.n_asked - len(tests) - len(chosen) :][: len(tests)]
        y = contrasts_of(q)
        lower = np.linalg.cholesky(with_errors(covariance.reshape(*y.shape, *y.shape), errors_of(q)))
        self.doubt.errors += list(solve_triangular(lower, (y - mean).ravel(), lower=True).reshape(y.shape))

    def _some(self, weights: np.ndarray, number: int) -> np.ndarray:
        """Numbers drawn without replacement, with chances in proportion to positive weights."""
        return np.argsort(self.random.exponential(size=len(weights)) / weights)[:number]

    def _fit(self) -> None:
        known = self.answered.codes, self.answered.y, self.answered.errors
        if self.n_asked >= REFIT * self._fitted_at:
            self.parameters, self._fitted_at = fitted(*known, self.parameters), self.n_asked
        self.posterior = Posterior(self.parameters, *known)

    def _seen(self) -> Visited:
        """Memories that occur in games of the mean policy and of random ones, but those asked."""
        policies = [self.mean, *(self.draw(self.random) for _ in range(SEEN_DRAWS))]
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
        runs = games_of(self.tolerance) if self.tested or self.whole else FEWEST
        games = np.random.SeedSequence(int(self.random.integers(2**62))).spawn(1 + DRAWS)
        played = word_shares(self.mean, self.game, 2 * runs, np.random.default_rng(games[0]))
        value = played.mean(0)
        if self.whole:  # where all games ended alike, one in `runs` might not
            return value, (played.var(0) + 1 / runs) / runs
        if not self.tested:
            return value, np.full_like(value, np.inf)
        squares = []
        for each in games[1:]:
            drawn = word_shares(self.draw(self.random), self.game, runs, np.random.default_rng(each))
            squares.append((drawn.mean(0) - value) ** 2 + 1 / runs**2)
        return value, np.mean(squares, axis=0)
