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
from validation.naming_game._roster import make_cast, start_composition


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
    policy: xr.Dataset,
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
    population = Population(policy)
    cast = make_cast(population, committed, extra=False)
    rules = Rules.of(cast.q, population.space)
    start = cast.states(n_agents, start_composition(population, initial))
    results = np.empty((len(runs), 5))
    states, streams = start.astype(rules.successors.dtype), seed_streams(seed, n_agents, runs)
    limits = np.array([stop.window, stop.successes, stop.longest, ROUNDS_AVERAGED * n_agents])
    old_word = -1 if initial is None else population.words.index(initial)

    def play_some(some: slice) -> None:
        _play_all(states, streams[some], limits, old_word, rules.thresholds, rules.successors, results[some])

    in_threads(play_some, len(runs), stop.longest // INTERACTIONS_A_NUMBER)
    interactions, success_rate, word, share, stopped = results.T
    return Ends(interactions.astype(int), success_rate, word.astype(int), share, stopped.astype(bool))


@njit(cache=True, nogil=True)
def _play_all(start, streams, limits, old_word, thresholds, successors, results):
    for run in range(streams.shape[0]):
        _play(start.copy(), streams[run], limits, old_word, thresholds, successors, results[run])


@njit(cache=True)
def _play(states, stream, limits, old_word, thresholds, successors, result):
    """One run to its end; writes its length, success rate, majority word, its share and whether it stopped by itself.

    `limits` (4,) is the window of the stopping rule, the successes needed in it, the greatest length, and the number of
    interactions that describe the end.
    """
    window, needed, longest, described = limits[0], limits[1], limits[2], limits[3]
    n_words = np.uint64(thresholds.shape[1] + 1)
    pair = np.zeros(2, dtype=np.int64)
    kept = max(window, described)
    said = np.zeros((kept, 2), dtype=np.int16)  # the words of the last interactions, in a ring
    times = np.zeros(n_words, dtype=np.int64)  # how often each was said in the window
    successes = 0
    played = 0
    stopped = False
    while played < longest and not stopped:
        if played >= window:
            leaving = said[(played - window) % kept]
            successes -= np.int64(leaving[0] == leaving[1])
            times[leaving[0]] -= 1
            times[leaving[1]] -= 1
        _interact(states, stream, thresholds, successors, n_words, pair)
        said[played % kept, 0] = pair[0]
        said[played % kept, 1] = pair[1]
        successes += np.int64(pair[0] == pair[1])
        times[pair[0]] += 1
        times[pair[1]] += 1
        played += 1
        if played >= window and successes >= needed:
            stopped = times.argmax() != old_word  # of words said equally often the first
    counted = min(played, described)
    agreed = 0
    for back in range(counted):
        words = said[(played - 1 - back) % kept]
        agreed += np.int64(words[0] == words[1])
    word, share = _majority(said, played, counted, n_words)
    result[0], result[1], result[2], result[3], result[4] = played, agreed / counted, word, share, stopped


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
