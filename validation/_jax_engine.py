"""Ensembles of runs by JAX: the same law as `_ensemble`, other draws, and worth its while on a GPU only.

All runs take their k-th interaction together, so that a GPU has as much to do at once as there are runs. Runs that have
ended are taken out now and then, not at once, since each number of runs is compiled anew.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meanfield import PopulationRuns, SpeechRules, play_rounds, select_runs
from theory._random import splitmix
from validation._convention import ROUNDS_AVERAGED, Convention
from validation._ensemble import Ensemble, Rules

STATE_BYTES = 2**28  # of agents' states held at once; a single run may need more
INTERACTIONS_A_CALL = 2 * 10**7  # a call can't be interrupted: under a second for a processor
SHRINK = 4  # runs are taken out when so much fewer are left
FEWEST = 256  # runs below which there is nothing to gain from taking some out


def ensemble_key(seed: int, n_agents: int) -> np.ndarray:
    """64 bits for the runs of one seed and population size; of one seed no two sizes have the same."""
    return splitmix(splitmix(np.array([seed], dtype=np.uint64)) + np.uint64(n_agents))[0]


def play_ensemble(
    rules: Rules,
    start: np.ndarray,
    runs: int,
    seed: int,
    convention: Convention,
    max_rounds: int,
    record_rounds: int | None,
    report: Callable[[int], object],
) -> Ensemble:
    """As `_ensemble.play_ensemble`: runs depend on (seed, N, their number), and differ from those of that engine."""
    n_words = rules.q.shape[1]
    recorded = 0 if record_rounds is None else record_rounds + 1
    consensus = np.tile(np.array([0, -1]), (runs, 1))
    shares = np.empty((runs, recorded, n_words))
    shares[:, :1] = rules.q[start].mean(0)
    portion = max(1, STATE_BYTES // (len(start) * rules.successors.itemsize))
    key = ensemble_key(seed, len(start))
    for first in range(0, runs, portion):
        part = slice(first, min(first + portion, runs))
        group = _start_runs(rules, start, np.arange(part.start, part.stop))
        _play_portion(rules, group, key, convention, consensus[part], shares[part], max_rounds, report)
    return Ensemble(consensus[:, 0], consensus[:, 1], shares)


def _start_runs(rules: Rules, start: np.ndarray, numbers: np.ndarray) -> PopulationRuns:
    return PopulationRuns(
        run=numbers.astype(np.uint32),
        played=np.array(0),
        states=np.tile(start.astype(rules.successors.dtype), (len(numbers), 1)),
        agreed=np.zeros((len(numbers), ROUNDS_AVERAGED, rules.q.shape[1]), dtype=np.int64),
        consensus_round=np.zeros(len(numbers), dtype=np.int64),
        consensus_word=np.full(len(numbers), -1),
    )


def _play_portion(
    rules: Rules,
    group: PopulationRuns,
    key: np.ndarray,
    convention: Convention,
    consensus: np.ndarray,
    shares: np.ndarray,
    max_rounds: int,
    report: Callable[[int], object],
) -> None:
    """Plays the runs of `group` to their ends, writing into `consensus` and `shares`."""
    n_runs, n_agents = group.states.shape
    spoken = SpeechRules(rules.q, rules.thresholds, rules.successors)
    test = np.array([convention.first_test, convention.successes_needed(n_agents)])
    min_rounds = max(shares.shape[1] - 1, 0)
    places, played, settled = np.arange(n_runs), 0, 0
    while played < max_rounds and places.size:
        a_call = max(1, INTERACTIONS_A_CALL // (len(places) * n_agents))
        to_record = min(a_call, min_rounds) if played < min_rounds else 0
        n_rounds = min(a_call, (min_rounds if to_record else max_rounds) - played)
        group, said = play_rounds(group, spoken, key, np.array(n_rounds), test, recorded=to_record)
        if to_record:  # no run ends before all is recorded, so that places are all runs in order
            shares[:, played + 1 : played + 1 + n_rounds] = np.asarray(said)[:n_rounds].transpose(1, 0, 2)
        played += n_rounds
        consensus[places] = np.stack([group.consensus_round, group.consensus_word], axis=1)
        ended = (consensus[:, 0] > 0) & (played >= min_rounds) | (played == max_rounds)
        report(int(np.where(ended, max_rounds, played).sum()) - settled)
        settled = int(np.where(ended, max_rounds, played).sum())
        group, places = _without_ended(group, places, ended[places])


def _without_ended(group: PopulationRuns, places: np.ndarray, ended: np.ndarray) -> tuple[PopulationRuns, np.ndarray]:
    """Fewer runs, if many have ended; numbers of runs are quarters of quarters, for few to be compiled."""
    left, size = int((~ended).sum()), len(places)
    if left == 0:
        return group, places[:0]
    while size > FEWEST and left <= -(-size // SHRINK):
        size = -(-size // SHRINK)
    if size == len(places):
        return group, places
    kept = np.sort(np.argsort(ended, kind="stable")[:size])
    return select_runs(group, kept), places[kept]
