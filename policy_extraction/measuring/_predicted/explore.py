"""Measurements of many words: the memories of games are asked, until the word shares at their end are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from policy_extraction.measuring._exploration import LEAST, Batch, Exploration
from policy_extraction.measuring._gaussian_process import basis, with_errors
from policy_extraction.measuring._memories import NONE, states_of

Function = Callable[[np.ndarray], np.ndarray]  # choice probabilities (n, W), or logits, in memories (n, H)

CUT = 1.0  # variance of the log-probability of a word below it: differences of such words say nothing
FIRST = 12  # memories before the first fit
CHOSEN = 4  # one of so many memories of a batch is chosen, the others are tests
TESTS = 59  # 0.95^59 < 0.05
DRAWS = 16  # policies, for the interval
SEEN_RUNS, SEEN_DRAWS = 20, 4  # games, and random policies beside the mean, in which memories are looked for
CANDIDATES = 4000  # contrasts of memories whose variances are computed
FEWEST = 100  # games of a policy


class Game(NamedTuple):
    """N agents with empty memories and memories of H interactions, who play rounds of N interactions."""

    n_agents: int
    rounds: int
    memory_length: int
    n_words: int


class Shares(NamedTuple):
    """Word shares (W,) and half the widths (W,) of their intervals, infinite while the tests are few."""

    value: np.ndarray
    half: np.ndarray


def play(
    function: Function, game: Game, runs: int, random: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Play independent games of agents with this policy.

    Yields, for each interaction, the memories (runs, 2, H) from which the two agents speak, and the choice
    probabilities (runs, N, W) of all agents after it.
    """
    N, rounds, H, W = game
    codes, each = np.full((runs, N, H), NONE), np.arange(runs)[:, None]
    rows: dict[int, int] = {}  # of `known`, by state: most memories occur many times
    known = np.empty((0, W))

    def probabilities(codes: np.ndarray) -> np.ndarray:
        """Choice probabilities (n, W) in memories (n, H); the function is asked about each memory once."""
        nonlocal known
        unique, first, back = np.unique(states_of(codes, W), return_index=True, return_inverse=True)
        new = np.array([state not in rows for state in unique.tolist()])
        if new.any():
            rows.update((state, len(known) + k) for k, state in enumerate(unique[new].tolist()))
            known = np.concatenate([known, function(codes[first[new]])])
        return known[np.array([rows[state] for state in unique.tolist()])[back.reshape(-1)]]

    q = np.tile(probabilities(codes[0, :1]), (runs, N, 1))
    for _ in range(N * rounds):
        one = random.integers(N, size=runs)
        other = (one + random.integers(1, N, size=runs)) % N
        pair = np.stack([one, other], axis=1)
        before, limits = codes[each, pair], q[each, pair].cumsum(-1)
        number = random.random(limits.shape[:-1]) * limits[..., -1]
        said = np.minimum((number[..., None] >= limits).sum(-1), W - 1)
        after = np.concatenate([(said * W + said[:, ::-1])[..., None], before[..., :-1]], axis=-1)
        codes[each, pair], q[each, pair] = after, probabilities(after.reshape(-1, H)).reshape(runs, 2, W)
        yield before, q


def word_shares(function: Function, game: Game, runs: int, random: np.random.Generator) -> np.ndarray:
    """The probability that a random agent says each word at the end, shape (runs, W)."""
    q = np.empty(0)
    for _, q in play(function, game, runs, random):  # noqa: B007  (the last one)
        pass
    return q.mean(1)


def with_answers(codes: np.ndarray, q: np.ndarray, logits: Function) -> Function:
    """The policy of these logits, but with the answers q (n, W) in memories (n, H)."""
    n_words = q.shape[1]
    states = states_of(codes, n_words)
    order = np.argsort(states)

    def policy(codes: np.ndarray) -> np.ndarray:
        found, asked = softmax(logits(codes), axis=1), states_of(codes, n_words)
        place = order[np.minimum(np.searchsorted(states, asked, sorter=order), len(order) - 1)]
        return np.where((states[place] == asked)[:, None], q[place], found)

    return policy


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
class ShareExploration(Exploration[Shares]):
    """A measurement of a policy of W words, until the word shares at the end of a game are known.

    The tolerance is half the width of their intervals.
    """

    game: Game

    first_batch, most_batch, growth = 4, 1000, 6

    def __post_init__(self) -> None:
        super().__post_init__()
        self.codes = np.empty((0, self.game.memory_length), dtype=np.int64)  # the memories asked
        self.q = np.empty((0, self.game.n_words))
        self._before: tuple[np.ndarray, np.ndarray] | None = None  # shares and variances, once there are enough tests

    @property
    def tested(self) -> bool:
        """Whether there are enough tests for intervals."""
        return len(self.doubt.errors) >= TESTS

    @property
    def mean(self) -> Function:
        """The policy of the posterior mean."""
        return with_answers(self.codes, self.q, self.posterior.mean)

    def draw(self, random: np.random.Generator) -> Function:
        """A random policy that agrees with the answers."""
        return with_answers(self.codes, self.q, self.posterior.draw(random, self.doubt.scale))

    def enough(self, known: Shares) -> bool:
        """Whether all shares are known as well as asked for, by a model that agrees with the tests."""
        doubt = self.doubt
        return self.whole or (bool(doubt.moves) and doubt.holds and bool((known.half <= self.tolerance).all()))

    def _look(self, number: int) -> tuple[Shares, Callable[[], Batch]]:
        seen, times = self._seen()
        self.whole = not len(seen)
        value, variance = self._shares()
        if self._before is not None:
            # The mean square of a move, relative to what was expected at most.
            squares = (value - self._before[0]) ** 2
            self.doubt.moves.append(float(squares.sum() / (self._before[1] + variance).sum()))
        self._before = (value, variance) if self.tested else None
        known = Shares(value, self.doubt.half(np.sqrt(variance), DRAWS))
        return known, partial(self._batch, seen, times, min(number, len(seen)))

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

    def _batch(self, seen: np.ndarray, times: np.ndarray, number: int) -> Batch:
        """Memories of those seen: one in four by visits and variance, the others by visits alone, as tests."""
        tests = self._some(times, number - number // CHOSEN)
        chosen = np.setdiff1d(np.arange(len(times)), tests)
        if len(chosen):
            chosen = chosen[self._some(times[chosen], CANDIDATES // self.game.n_words)]
            weights = times[chosen] * self.posterior.variances(seen[chosen]).mean(1)
            chosen = chosen[self._some(weights, number // CHOSEN)]
        return seen[np.concatenate([tests, chosen])], len(tests)

    def _measure(self, memories: np.ndarray, n_tests: int) -> None:
        q = self.ask(memories)
        if n_tests:
            tests, y = memories[:n_tests], contrasts_of(q[:n_tests])
            covariance = self.posterior.covariance(tests).reshape(*y.shape, *y.shape)
            self.doubt.test(y - self.posterior.mean.contrasts(tests), with_errors(covariance, errors_of(q[:n_tests])))
        self.codes, self.q = np.concatenate([self.codes, memories]), np.concatenate([self.q, q])

    def _some(self, weights: np.ndarray, number: int) -> np.ndarray:
        """Numbers drawn without replacement, with probabilities in proportion to positive weights."""
        return np.argsort(self.random.exponential(size=len(weights)) / weights)[:number]

    def _fit(self) -> None:
        self._condition(self.codes, contrasts_of(self.q), errors_of(self.q))

    def _seen(self) -> tuple[np.ndarray, np.ndarray]:
        """Memories (n, H) from which agents of the mean policy and of random ones speak, but those asked; how often."""
        W, every = self.game.n_words, []
        for policy in [self.mean, *(self.draw(self.random) for _ in range(SEEN_DRAWS))]:
            spoken = [before for before, _ in play(policy, self.game, SEEN_RUNS, self.random)]
            every.append(np.concatenate(spoken).reshape(-1, self.game.memory_length))
        codes = np.concatenate(every)
        states, first, times = np.unique(states_of(codes, W), return_index=True, return_counts=True)
        new = ~np.isin(states, states_of(self.codes, W))
        return codes[first[new]], times[new]

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
