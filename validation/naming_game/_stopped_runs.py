"""Populations played under the conditions of real runs, each stopped as the real ones were: interaction by interaction.

[000] and [001] test for consensus after each interaction, not at the end of a round. Their runs have 150 to 400
interactions, for which a round of 24 would be too coarse.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield.toolbox import compiled, in_threads, inner
from theory.streams import seed_streams
from validation._engine.ensemble import INTERACTIONS_A_NUMBER, portions
from validation.naming_game._convention import ROUNDS_AVERAGED
from validation.naming_game._lazy_kernel import Answers, speak
from validation.naming_game._lazy_policy import (
    AGENT_BYTES,
    LazyPolicy,
    find_rows,
    lazy_start,
    lazy_table,
    rows_at_start,
)
from validation.naming_game._roster import make_cast

MOST_ANSWERS = 2**18  # kept of a lazy policy: runs that never agree have new memories without end


class Stop(NamedTuple):
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
    curves: np.ndarray | None = None,
) -> Ends:
    """Runs with the numbers `runs`, one at least, from empty memories or from consensus on `initial`.

    A run depends on (seed, N, its number) only. The successes in each round are added to `curves` (run, round).
    """
    lazy = policy if isinstance(policy, LazyPolicy) else lazy_table(policy)
    start = lazy_start(lazy, make_cast(lazy, committed, sizes=[n_agents]), n_agents, initial)
    streams, curves = seed_streams(seed, n_agents, runs), np.empty((len(runs), 0)) if curves is None else curves
    # Window of the rule, successes needed in it, greatest length, interactions that describe the end, old word
    old_word = -1 if initial is None else lazy.words.index(initial)
    limits = np.array([stop.window, stop.successes, stop.longest, ROUNDS_AVERAGED * n_agents, old_word])
    a_run = n_agents * AGENT_BYTES + 4 * max(limits[0], limits[3])
    forgets = lazy is policy
    parts = [_play(lazy, forgets, start, limits, streams[some], curves[some]) for some in portions(len(runs), a_run)]
    return Ends(*map(np.concatenate, zip(*parts, strict=True)))


def play_success_curves(
    policy: LazyPolicy, n_agents: int, stop: Stop, seed: int, runs: np.ndarray, rounds: int
) -> tuple[Ends, np.ndarray]:
    """Runs from empty memories, and the share of successes in each round of N interactions, (run, round).

    It is NaN in rounds that a run did not finish.
    """
    curves = np.zeros((len(runs), rounds))
    ends = play_real_runs(policy, n_agents, {}, None, stop, seed, runs, curves)
    finished = np.arange(1, rounds + 1) * n_agents <= ends.interactions[:, None]
    return ends, np.where(finished, curves / n_agents, np.nan)


def _play(
    policy: LazyPolicy, forgets: bool, start: np.ndarray, limits: np.ndarray, streams: np.ndarray, curves: np.ndarray
) -> Ends:
    """The runs of `streams`, played on whenever the policy has told the memories at which they halted."""
    runs, words = len(streams), np.arange(len(policy.words))
    states, rows = np.tile(start, (runs, 1)), np.tile(rows_at_start(policy, start), (runs, 1))
    said, times = np.zeros((runs, max(limits[0], limits[3]), 2), np.int16), np.zeros((runs, words.size), np.int64)
    progress, active = np.zeros((runs, 3), np.int64), np.arange(runs)
    parts = states, rows, streams, said, times, progress, curves

    def play_some(halted: np.ndarray, answers: Answers, some: slice) -> None:
        tables = limits, answers.thresholds, answers.table, answers.sizes
        _play_on(active[some], halted[some], *parts, *tables)

    while active.size:
        halted = np.zeros(active.size, np.bool_)
        in_threads(partial(play_some, halted, policy.answers), active.size, int(limits[2]) // INTERACTIONS_A_NUMBER)
        active = active[halted]
        if forgets and active.size and policy.asked.memories > MOST_ANSWERS:
            policy.forget()
            rows[:, start >= 0] = -1
        find_rows(policy, active, states, rows)
    # The last 3N interactions, or all of a shorter run
    played = progress[:, 0]
    counted, back = np.minimum(played, limits[3]), np.arange(limits[3])
    last = said[np.arange(runs)[:, None], (played[:, None] - 1 - back) % said.shape[1]]
    last[back >= counted[:, None]] = -1
    agreed = ((last[..., 0] == last[..., 1]) & (last[..., 0] >= 0)).sum(1)
    times = np.stack([(last == word).sum((1, 2)) for word in words], 1)
    return Ends(played, agreed / counted, times.argmax(1), times.max(1) / (2 * counted), progress[:, 2] == 1)


@compiled
def _play_on(active, halted, states, rows, streams, said, times, progress, curves, limits, thresholds, table, sizes):
    """Plays the runs with the numbers `active` to their ends, or up to an agent whose memory has no row (`halted`)."""
    pair, n_agents = np.zeros(2, dtype=np.int64), states.shape[1]
    for k in range(active.size):
        run = active[k]
        done, curve, own, row, stream = progress[run], curves[run], states[run], rows[run], streams[run]
        last, often = said[run], times[run]
        while done[0] < limits[2] and done[2] == 0:
            if not speak(own, row, stream, thresholds, table, sizes, pair):
                halted[k] = True
                break
            if done[0] // n_agents < curve.size:
                curve[done[0] // n_agents] += np.float64(pair[0] == pair[1])
            _note(pair, last, often, done, limits)


@inner
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
