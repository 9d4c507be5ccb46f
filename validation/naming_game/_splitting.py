"""Splitting: runs that come far are continued several times, runs that don't are given up."""

# A stage starts from the runs that came above a level, and plays each until it is above the next level or at consensus.
# Consensus on the word that is asked for is above all levels. With n runs in each stage, where a share p_k comes above
# level k, Π p_k is an unbiased estimate of the probability of ending at that word, for any levels and any coordinate
# that do not depend on these runs. So a pilot, whose runs aren't counted, chooses the levels. A run is stopped where it
# is found strictly above the level for the first time; all that decides what happens after is copied. Each run that
# came above is continued equally often, up to one; chance tells which. `rare_event` names the sources.

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from meanfield.toolbox import compiled, inner
from theory.pairs import NO_EDGES
from theory.streams import seed_streams
from validation._engine.ensemble import collection_paused, play_to_end
from validation._engine.topology import Edges
from validation.naming_game._convention import ROUNDS_AVERAGED
from validation.naming_game._ensemble import Rules
from validation.naming_game._kernel import note_consensus, play

# Runs are looked at after each part of a round. A large share of the noise falls into the first round.
PARTS, PARTS_OF_THE_FIRST = 8, 64
PASSED = 0.25  # share of the pilot's runs that come above the next level
MOST_LEVELS = 300  # probabilities down to 1e-180
TOP = float(np.finfo(float).max)  # only consensus on the word is above
FIRST_RUN = 2**48  # number of a stream: streams of `simulate` have lower ones


class Game(NamedTuple):
    """The game, and when it has come to the word that is asked for."""

    rules: Rules
    start: np.ndarray  # (N,), memory of each agent
    test: np.ndarray  # (2,), first round after which convergence is tested, and successes that it takes
    max_rounds: int
    target: int  # number of the word
    weights: np.ndarray  # (time, state), of each part of a round, the last for all later ones
    edges: Edges = NO_EDGES  # as in `theory.pairs`


class Division(NamedTuple):
    """Into how many parts rounds are divided."""

    first: int
    later: int

    @classmethod
    def of(cls, n_agents: int) -> Division:
        """Rounds of N interactions, at least one in each part."""
        return cls(min(PARTS_OF_THE_FIRST, n_agents), min(PARTS, n_agents))

    def parts(self, rounds: int) -> int:
        """Parts of so many rounds, ≥ 1."""
        return self.first + (rounds - 1) * self.later

    def rounds(self, parts: np.ndarray) -> np.ndarray:
        """Rounds after so many parts."""
        return np.minimum(parts / self.first, 1) + np.maximum(parts - self.first, 0) / self.later


class Flock(NamedTuple):
    """Runs side by side, as far as they have been played."""

    states: np.ndarray  # (run, N)
    agreed: np.ndarray  # (run, 3, W), agreements of the last rounds
    consensus: np.ndarray  # (run, 2), round and word of consensus, 0 and -1 before it
    parts: np.ndarray  # (run,), parts of rounds played

    @classmethod
    def at_start(cls, game: Game, runs: int) -> Flock:
        """Before the first interaction."""
        states = np.tile(game.start.astype(game.rules.successors.dtype), (runs, 1))
        agreed = np.zeros((runs, ROUNDS_AVERAGED, game.rules.q.shape[1]), np.int64)
        return cls(states, agreed, np.tile(np.array([0, -1]), (runs, 1)), np.zeros(runs, np.int64))

    def copied(self, runs: np.ndarray) -> Flock:
        """The runs with these numbers, in memory of their own."""
        return Flock(*(values[runs] for values in self))


class Draws(NamedTuple):
    """The random numbers of one replication; the pilot is number 0."""

    seed: int
    n_agents: int
    replication: int

    def streams(self, stage: int, runs: int) -> np.ndarray:
        """Random streams of the runs of a stage, shape (runs, 4)."""
        first = FIRST_RUN + (self.replication * (MOST_LEVELS + 1) + stage) * runs
        return seed_streams(self.seed, self.n_agents, np.arange(first, first + runs))

    def continued(self, stage: int, above: np.ndarray) -> np.ndarray:
        """Which of the runs that came above a level each run of the next stage continues, shape (runs,)."""
        random = np.random.default_rng((self.seed, self.n_agents, self.replication, stage))
        order = random.permutation(np.flatnonzero(above))
        return order[np.arange(len(above)) * len(order) // len(above)]


class Replication(NamedTuple):
    """Outcome of a replication."""

    passed: np.ndarray  # (stage,), share of the runs that came above the stage's level; 0 after a stage with none
    rounds: float  # played, in all

    @property
    def probability(self) -> float:
        """The probability of ending at the word."""
        return float(self.passed.prod())


class Pilot(NamedTuple):
    """Levels that were chosen."""

    levels: list[float]
    rounds: float  # played, in all


@collection_paused()
def choose_levels(game: Game, runs: int, seed: int, report: Callable[[], object]) -> Pilot:
    """Levels above which about a quarter of the runs come, each from the one below; `report` is called at each."""
    flock, draws, levels, rounds = Flock.at_start(game, runs), Draws(seed, len(game.start), 0), [], 0.0
    everyone = np.arange(runs)
    for stage in range(MOST_LEVELS):
        highest, played = _play(game, flock.copied(everyone), draws.streams(stage, runs), TOP)
        rounds += played
        report()
        level = next_level(highest)
        if level is None:
            break
        # The same runs once more, stopped where they are above the level
        highest, played = _play(game, flock, draws.streams(stage, runs), level)
        rounds += played
        levels.append(level)
        flock = flock.copied(draws.continued(stage, highest > level))
    return Pilot(levels, rounds)


def next_level(highest: np.ndarray) -> float | None:
    """The level that a share `PASSED` of the runs is above, or fewer; None if enough are at the end, or all equal."""
    few = max(1, int(PASSED * len(highest)))
    if (highest > TOP).sum() >= few:
        return None
    level = np.sort(highest)[max(0, len(highest) - few - 1)]
    if level == highest.max():
        lower = highest[highest < level]
        return float(lower.max()) if lower.size else None
    return float(level)


@collection_paused()
def replicate(game: Game, levels: list[float], runs: int, draws: Draws, report: Callable[[], object]) -> Replication:
    """One estimate, independent of all others; `report` is called after each stage."""
    flock, passed, rounds = Flock.at_start(game, runs), np.zeros(len(levels) + 1), 0.0
    for stage, level in enumerate([*levels, TOP]):
        highest, played = _play(game, flock, draws.streams(stage, runs), level)
        above = highest > level
        passed[stage] = above.mean()
        rounds += played
        report()
        if not above.any():
            break
        flock = flock.copied(draws.continued(stage, above))
    return Replication(passed, rounds)


def _play(game: Game, flock: Flock, streams: np.ndarray, level: float) -> tuple[np.ndarray, float]:
    """Plays a flock until each run is above `level` or over: how high each came, and the rounds played in all."""
    division = Division.of(len(game.start))
    before, highest = division.rounds(flock.parts).sum(), np.full(len(streams), -np.inf)
    longest, cost = division.parts(game.max_rounds), max(1, len(game.start) // division.later)

    def more(active: np.ndarray, n_parts: int) -> None:
        _climb(active, game, division, flock, streams, highest, n_parts, longest, level)

    def ended() -> np.ndarray:
        return (highest > level) | (flock.consensus[:, 0] > 0)

    more(np.arange(len(streams)), 0)  # where they stand, also those whose time is over
    play_to_end(more, flock.parts, longest, cost, ended, lambda settled: None)
    return highest, float(division.rounds(flock.parts).sum() - before)


@inner
def _height(states, parts, consensus, target, weights):
    """Where a run is: +∞ at consensus on the word `target`, -∞ on another, else the mean of its agents' weights."""
    if consensus[0] > 0:
        return np.inf if consensus[1] == target else -np.inf
    row = min(parts, weights.shape[0] - 1)
    total = 0.0
    for agent in range(states.size):
        total += weights[row, np.uint64(states[agent])]
    return total / states.size


@inner
def _place_of(parts, division):
    """Rounds played, the number of the next part in its round, and the parts of this round."""
    first, later = division
    if parts < first:
        return 0, parts, first
    return 1 + (parts - first) // later, (parts - first) % later, later


@compiled
def _climb(active, game, division, flock, streams, highest, n_parts, longest, level):
    """Plays up to `n_parts` more parts of rounds of the runs `active`, until each is above `level` or at consensus.

    `flock.parts`, at most `longest`, may differ between runs; after each part `highest` (run,) receives where the run
    is if it is higher. The rows of `game.weights` are for numbers of parts, the last for all later ones.
    """
    rules, target, weights, test = game.rules, game.target, game.weights, game.test
    n_agents, n_words, parts = flock.states.shape[1], flock.agreed.shape[2], flock.parts
    met = np.empty(n_words * n_words, np.int64)
    for run in active:
        states, agreed, consensus = flock.states[run], flock.agreed[run], flock.consensus[run]
        last = min(parts[run] + n_parts, longest)
        highest[run] = max(highest[run], _height(states, parts[run], consensus, target, weights))
        while highest[run] <= level and consensus[0] == 0 and parts[run] < last:
            played, part, in_all = _place_of(parts[run], division)
            n_interactions = (part + 1) * n_agents // in_all - part * n_agents // in_all
            met[:] = 0
            play(n_interactions, states, streams[run], n_words, met, game.edges, rules.thresholds, rules.successors)
            for word in range(n_words):
                before = agreed[played % ROUNDS_AVERAGED, word] if part > 0 else 0
                agreed[played % ROUNDS_AVERAGED, word] = before + met[(n_words + 1) * word]
            parts[run] += 1
            if part == in_all - 1:
                note_consensus(consensus, played + 1, test[0], test[1], agreed, states, rules.q)
            highest[run] = max(highest[run], _height(states, parts[run], consensus, target, weights))
