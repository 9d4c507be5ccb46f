"""Ensembles of runs by JAX: the same law as `_ensemble` with other draws, faster on a GPU only.

All runs take their k-th interaction together, so a GPU has as much to do at once as there are runs. Runs that have
ended are taken out now and then, not at once, since each number of runs is compiled anew.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meanfield.toolbox import PopulationRuns, RoundRecords, SpeechRules, play_rounds, select_runs
from theory.streams import splitmix
from validation._engine.ensemble import portions
from validation.naming_game._convention import ROUNDS_AVERAGED
from validation.naming_game._ensemble import Ensemble, Plan, Rules

STATE_BYTES = 2**28  # of agents' states held at once; a single run may need more
INTERACTIONS_A_CALL = 2 * 10**7  # a call can't be interrupted: under a second for a processor
SHRINK = 4  # runs are taken out when so much fewer are left
RECORDS = {"word_share": "word_share", "said": "said", "success_rate": "agreed"}  # observables, from `RoundRecords`
FEWEST = 256  # runs below which there is nothing to gain from taking some out


def ensemble_key(seed: int, n_agents: int) -> np.ndarray:
    """64 bits for the runs of one seed and population size, different for all sizes of one seed."""
    return splitmix(splitmix(np.array([seed], dtype=np.uint64)) + np.uint64(n_agents))[0]


def play_ensemble(rules: Rules, start: np.ndarray, plan: Plan, report: Callable[[int], object]) -> Ensemble:
    """As `_ensemble.play_ensemble`: runs depend on (seed, N, their number), and differ from those of that engine."""
    ensemble = Ensemble.unplayed(plan, rules.q, start)
    key = ensemble_key(plan.seed, len(start))
    for part in portions(plan.runs, len(start) * rules.successors.itemsize, state_bytes=STATE_BYTES):
        group = _start_runs(rules, start, np.arange(part.start, part.stop))
        _play_portion(rules, group, key, plan, ensemble.part(part), report)
    return ensemble


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
    plan: Plan,
    ensemble: Ensemble,
    report: Callable[[int], object],
) -> None:
    """Plays the runs of `group` to their ends, writing into `ensemble`."""
    n_runs, n_agents = group.states.shape
    spoken = SpeechRules(rules.q, rules.thresholds, rules.successors)
    test, min_rounds, max_rounds = plan.test(n_agents), plan.recording.rounds, plan.max_rounds
    observables = tuple(RECORDS[name] for name in plan.recording.observables)
    places, played, settled = np.arange(n_runs), 0, 0
    while played < max_rounds and places.size:
        a_call = max(1, INTERACTIONS_A_CALL // (len(places) * n_agents))
        to_record = min(a_call, min_rounds) if played < min_rounds else 0
        n_rounds = min(a_call, (min_rounds if to_record else max_rounds) - played)
        group, records = play_rounds(
            group, spoken, key, np.array(n_rounds), test, recorded=to_record, observables=observables
        )
        if to_record:  # no run ends before all is recorded, so that places are all runs in order
            _write(ensemble, records, slice(played + 1, played + 1 + n_rounds), n_agents)
        played += n_rounds
        ensemble.consensus[places] = np.stack([group.consensus_round, group.consensus_word], axis=1)
        ended = (ensemble.consensus_round > 0) & (played >= min_rounds) | (played == max_rounds)
        before, settled = settled, int(np.where(ended, max_rounds, played).sum())
        report(settled - before)
        group, places = _without_ended(group, places, ended[places])


def _write(ensemble: Ensemble, records: RoundRecords, rounds: slice, n_agents: int) -> None:
    played = rounds.stop - rounds.start
    share, said, agreed = (np.swapaxes(np.asarray(values)[:played], 0, 1) for values in records)
    ensemble.word_share[:, rounds] = share
    ensemble.said[:, rounds] = said / (2 * n_agents)
    ensemble.success_rate[:, rounds] = agreed / n_agents


def _without_ended(group: PopulationRuns, places: np.ndarray, ended: np.ndarray) -> tuple[PopulationRuns, np.ndarray]:
    """Fewer runs, if many have ended; their number is a quarter, a quarter of it and so on, so few are compiled."""
    left, size = int((~ended).sum()), len(places)
    if left == 0:
        return group, places[:0]
    while size > FEWEST and left <= -(-size // SHRINK):
        size = -(-size // SHRINK)
    if size == len(places):
        return group, places
    kept = np.sort(np.argsort(ended, kind="stable")[:size])
    return select_runs(group, kept), places[kept]
