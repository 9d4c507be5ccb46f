"""Populations played under the conditions of real runs, each stopped as the real ones were: interaction by interaction.

[000] and [001] test for consensus after each interaction, not at the end of a round. Their runs have 150 to 400
interactions, for which a round of 24 would be too coarse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray as xr
from numba import njit

from meanfield import Population
from meanfield.toolbox import in_threads
from theory.pairs import next_pair, pair_limits
from theory.streams import next_bits, seed_streams
from validation._engine.ensemble import INTERACTIONS_A_NUMBER
from validation.naming_game._convention import ROUNDS_AVERAGED
from validation.naming_game._ensemble import Rules
from validation.naming_game._kernel import draw_word
from validation.naming_game._lazy_kernel import speak
from validation.naming_game._lazy_policy import LazyPolicy, find_rows, lazy_start, sizes_of
from validation.naming_game._roster import make_cast, start_composition

MOST_ANSWERS = 2**18  # kept of a lazy policy: runs that never agree have new memories without end


@dataclass(frozen=True, order=True)
class Stop:
    """When a run stops.

    It stops after the interaction with which at least `successes` of the last `window` have succeeded, unless those
    agree on the word of the consensus it started from; and at the latest after `longest` interactions.
    """

    window: int
    successes: int
    longest: int


class Ends(NamedTuple):
    """Ends of runs; shape (runs,) each."""

    interactions: np.ndarray
    success_rate: np.ndarray  # of the last 3N interactions, as are the two below
    word: np.ndarray  # index of the majority word
    share: np.ndarray
    stopped: np.ndarray  # whether its rule stopped it, not its greatest length


def play_real_runs(
    policy: xr.Dataset | LazyPolicy,
    n_agents: int,
    committed: dict[str, int],
    initial: str | None,
    stop: Stop,
    seed: int,
    runs: np.ndarray,
) -> Ends:
    """Runs with the numbers `runs`, from empty memories or from consensus on `initial`.

    A run depends on (seed, N, its number) only.
    """
    streams, curves = seed_streams(seed, n_agents, runs), np.empty((len(runs), 0))
    if isinstance(policy, LazyPolicy):
        return _play_lazily(policy, n_agents, committed, initial, stop, streams, curves)
    population = Population(policy)
    cast = make_cast(population, committed, sizes=[n_agents])
    rules = Rules.of(cast.q, population.space)
    start = cast.states(n_agents, start_composition(population, initial))
    results = np.empty((len(runs), 5))
    states = start.astype(rules.successors.dtype)
    limits = _limits(stop, n_agents, population.words, initial)

    def play_some(some: slice) -> None:
        _play_all(states, streams[some], limits, rules.thresholds, rules.successors, results[some])

    in_threads(play_some, len(runs), stop.longest // INTERACTIONS_A_NUMBER)
    return _ends(results)


def play_success_curves(
    policy: LazyPolicy, n_agents: int, stop: Stop, seed: int, runs: np.ndarray, rounds: int
) -> tuple[Ends, np.ndarray]:
    """Runs from empty memories, and the share of successes in each round of N interactions, (run, round).

    It is NaN in rounds that a run did not finish.
    """
    curves = np.zeros((len(runs), rounds))
    ends = _play_lazily(policy, n_agents, {}, None, stop, seed_streams(seed, n_agents, runs), curves)
    finished = np.arange(1, rounds + 1) * n_agents <= ends.interactions[:, None]
    return ends, np.where(finished, curves / n_agents, np.nan)


def _play_lazily(
    policy: LazyPolicy,
    n_agents: int,
    committed: dict[str, int],
    initial: str | None,
    stop: Stop,
    streams: np.ndarray,
    curves: np.ndarray,
) -> Ends:
    """The same runs as for a table, played on whenever the policy has told the memories at which they halted."""
    runs, n_words = len(streams), len(policy.words)
    start = lazy_start(policy, make_cast(policy, committed, sizes=[n_agents]), n_agents, initial)
    free = start >= 0
    rows = np.where(free, 0, -1 - start).astype(np.int32)
    rows[free] = policy.rows(start[free])
    states, rows = np.tile(start, (runs, 1)), np.tile(rows, (runs, 1))
    limits = _limits(stop, n_agents, policy.words, initial)
    said, times = _recent(runs, limits), np.zeros((runs, n_words), dtype=np.int64)
    progress = np.zeros((runs, 3), dtype=np.int64)
    active = np.arange(runs)
    while active.size:
        tables = policy.answers.thresholds, policy.answers.table, sizes_of(policy.space)
        halted = np.zeros(active.size, dtype=np.bool_)
        _play_on(active, halted, states, rows, streams, said, times, progress, curves, limits, *tables)
        active = active[halted]
        if policy.asked.memories > MOST_ANSWERS:
            policy.forget()
            rows[:, free] = -1
        if active.size:
            find_rows(policy, active, states, rows)
    results = np.empty((runs, 5))
    _describe_all(said, progress, limits, n_words, results)
    return _ends(results)


def _limits(stop: Stop, n_agents: int, words: tuple[str, ...], initial: str | None) -> np.ndarray:
    """Window of the rule, successes needed in it, greatest length, interactions that describe the end, old word."""
    old_word = -1 if initial is None else words.index(initial)
    return np.array([stop.window, stop.successes, stop.longest, ROUNDS_AVERAGED * n_agents, old_word])


def _recent(runs: int, limits: np.ndarray) -> np.ndarray:
    return np.zeros((runs, max(limits[0], limits[3]), 2), dtype=np.int16)


def _ends(results: np.ndarray) -> Ends:
    interactions, success_rate, word, share, stopped = results.T
    return Ends(interactions.astype(int), success_rate, word.astype(int), share, stopped.astype(bool))


@njit(cache=True, nogil=True)
def _play_all(start, streams, limits, thresholds, successors, results):
    n_words = thresholds.shape[1] + 1
    pair = np.zeros(2, dtype=np.int64)
    for run in range(streams.shape[0]):
        states, stream = start.copy(), streams[run]
        said = np.zeros((max(limits[0], limits[3]), 2), dtype=np.int16)
        times = np.zeros(n_words, dtype=np.int64)
        progress = np.zeros(3, dtype=np.int64)
        while progress[0] < limits[2] and progress[2] == 0:
            _interact(states, stream, thresholds, successors, np.uint64(n_words), pair)
            _note(pair, said, times, progress, limits)
        _describe(said, progress, limits, n_words, results[run])


@njit(cache=True, nogil=True)
def _play_on(active, halted, states, rows, streams, said, times, progress, curves, limits, thresholds, table, sizes):
    """Plays the runs with the numbers `active` to their ends, or up to an agent whose memory has no row (`halted`)."""
    pair = np.zeros(2, dtype=np.int64)
    n_agents = states.shape[1]
    for k in range(active.size):
        run = active[k]
        done = progress[run]
        while done[0] < limits[2] and done[2] == 0:
            if not speak(states[run], rows[run], streams[run], thresholds, table, sizes, pair):
                halted[k] = True
                break
            if done[0] // n_agents < curves.shape[1]:
                curves[run, done[0] // n_agents] += np.float64(pair[0] == pair[1])
            _note(pair, said[run], times[run], done, limits)


@njit(cache=True)
def _note(pair, said, times, progress, limits):
    """Writes the words of an interaction into `progress` (interactions, successes in the window, stopped).

    `said` is a ring of the words of the last interactions, and `times` how often each word was said in the window.
    """
    window, needed, kept = limits[0], limits[1], said.shape[0]
    played = progress[0]
    if played >= window:
        leaving = said[(played - window) % kept]
        progress[1] -= np.int64(leaving[0] == leaving[1])
        times[leaving[0]] -= 1
        times[leaving[1]] -= 1
    said[played % kept, 0] = pair[0]
    said[played % kept, 1] = pair[1]
    progress[1] += np.int64(pair[0] == pair[1])
    times[pair[0]] += 1
    times[pair[1]] += 1
    progress[0] = played + 1
    if progress[0] >= window and progress[1] >= needed:
        progress[2] = np.int64(times.argmax() != limits[4])  # of words said equally often the first


@njit(cache=True)
def _describe_all(said, progress, limits, n_words, results):
    for run in range(results.shape[0]):
        _describe(said[run], progress[run], limits, n_words, results[run])


@njit(cache=True)
def _describe(said, progress, limits, n_words, result):
    """Length of a run, success rate, majority word, its share, and whether its rule stopped it."""
    played = progress[0]
    counted = min(played, limits[3])
    agreed = 0
    for back in range(counted):
        words = said[(played - 1 - back) % said.shape[0]]
        agreed += np.int64(words[0] == words[1])
    word, share = _majority(said, played, counted, n_words)
    result[0], result[1], result[2], result[3], result[4] = played, agreed / counted, word, share, progress[2]


@njit(cache=True)
def _majority(said, played, counted, n_words):
    """The word said most often in the last `counted` interactions, the first of equals, and its share."""
    times = np.zeros(n_words, dtype=np.int64)
    for back in range(counted):
        for side in range(2):
            times[said[(played - 1 - back) % said.shape[0], side]] += 1
    word = times.argmax()
    return word, times[word] / (2 * counted)


@njit(cache=True)
def _interact(states, stream, thresholds, successors, n_words, pair):
    """One interaction of two random distinct agents; writes the words they say into `pair`."""
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    limits = pair_limits(states.size)
    i, j, s0, s1, s2, s3 = next_pair(limits, s0, s1, s2, s3)
    state_i = np.uint64(states[i])
    state_j = np.uint64(states[j])
    bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
    word_i = draw_word(thresholds, state_i, bits)
    bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
    word_j = draw_word(thresholds, state_j, bits)
    states[i] = np.uint64(successors[state_i]) + n_words * word_i + word_j
    states[j] = np.uint64(successors[state_j]) + n_words * word_j + word_i
    pair[0], pair[1] = np.int64(word_i), np.int64(word_j)
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3
