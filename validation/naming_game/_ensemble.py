"""An ensemble of naming games of one population size."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np

from meanfield import MemorySpace
from theory.streams import seed_streams
from validation._engine.collection_paused import collection_paused
from validation._engine.ensemble import play_to_end, portions
from validation._engine.thresholds import word_thresholds
from validation.naming_game._convention import ROUNDS_AVERAGED, Convention
from validation.naming_game._kernel import advance
from validation.naming_game._roster import combined_successors

OBSERVABLES = ("word_share", "said", "success_rate")


@dataclass(frozen=True)
class Rules:
    """Policies in the form that the kernel reads: arrays over the states of all kinds, made once for all ensembles."""

    q: np.ndarray  # (kinds · S, W)
    thresholds: np.ndarray  # (kinds · S, W - 1)
    successors: np.ndarray  # (kinds · S,), in the integer type in which agents' states are kept

    @classmethod
    def of(cls, q: np.ndarray, space: MemorySpace) -> Rules:
        """From choice probabilities, shape (kinds, S, W)."""
        flat = np.ascontiguousarray(q.reshape(-1, q.shape[-1]))
        state_type = np.int16 if len(flat) <= np.iinfo(np.int16).max else np.int32
        return cls(flat, word_thresholds(flat), combined_successors(space, len(q)).astype(state_type))


class Recording(NamedTuple):
    """How many rounds are recorded, and which of the `OBSERVABLES`."""

    rounds: int = 0
    observables: tuple[str, ...] = ()

    def shapes(self, n_words: int) -> list[tuple[int, ...]]:
        """Of the records of a run, one for each of the `OBSERVABLES`."""
        shares, said, rates = (self.rounds + 1 if name in self.observables else 0 for name in OBSERVABLES)
        return [(shares, n_words), (said, n_words), (rates,)]

    def numbers(self, n_words: int) -> int:
        """How many numbers are recorded of a run."""
        return sum(math.prod(shape) for shape in self.shapes(n_words))


class Ensemble(NamedTuple):
    """What the runs of one population size came to; rounds from 0 on, no rounds of what is not recorded."""

    consensus: np.ndarray  # (run, 2): rounds played by then and number of the word; 0 and -1 where there was none
    word_share: np.ndarray  # (run, round, word)
    said: np.ndarray  # (run, round, word), NaN in round 0
    success_rate: np.ndarray  # (run, round), NaN in round 0

    @classmethod
    def unplayed(cls, runs: int, n_words: int, recording: Recording) -> Ensemble:
        """To be written into."""
        recorded = [np.empty((runs, *shape)) for shape in recording.shapes(n_words)]
        for values in recorded:
            values[:, :1] = np.nan
        return cls(np.tile(np.array([0, -1]), (runs, 1)), *recorded)

    def part(self, runs: slice) -> Ensemble:
        """Some of the runs, in the same memory."""
        return Ensemble(*(values[runs] for values in self))

    @property
    def consensus_round(self) -> np.ndarray:
        """Rounds played until consensus, shape (run,); 0 where there was none."""
        return self.consensus[:, 0]

    @property
    def consensus_word(self) -> np.ndarray:
        """Number of the word of consensus, shape (run,); -1 where there was none."""
        return self.consensus[:, 1]


@collection_paused()
def play_ensemble(
    rules: Rules,
    start: np.ndarray,
    runs: int,
    seed: int,
    convention: Convention,
    max_rounds: int,
    recording: Recording,
    report: Callable[[int], object],
) -> Ensemble:
    """`runs` runs from the states `start` of the agents; `report` is told how many rounds are now settled, over all."""
    n_agents, n_words = len(start), rules.q.shape[1]
    ensemble = Ensemble.unplayed(runs, n_words, recording)
    if "word_share" in recording.observables:
        ensemble.word_share[:, 0] = rules.q[start].mean(0)
    for part in portions(runs, n_agents * rules.successors.itemsize, numba.get_num_threads()):
        streams = seed_streams(seed, n_agents, np.arange(part.start, part.stop))
        _play_portion(rules, start, convention, streams, ensemble.part(part), max_rounds, recording.rounds, report)
    return ensemble


def _play_portion(
    rules: Rules,
    start: np.ndarray,
    convention: Convention,
    streams: np.ndarray,
    ensemble: Ensemble,
    max_rounds: int,
    min_rounds: int,
    report: Callable[[int], object],
) -> None:
    """Plays the runs of `streams` to their ends, writing into `ensemble`."""
    runs, n_agents, n_words = len(streams), len(start), rules.q.shape[1]
    states = np.tile(start.astype(rules.successors.dtype), (runs, 1))
    agreed = np.zeros((runs, ROUNDS_AVERAGED, n_words), dtype=np.int64)
    played = np.zeros(runs, dtype=np.int64)
    test = np.array([convention.first_test, convention.successes_needed(n_agents)])
    tables = rules.thresholds, rules.successors, rules.q

    def more(active: np.ndarray, n_rounds: int) -> None:
        advance(active, states, streams, agreed, *ensemble, played, n_rounds, min_rounds, test, *tables)

    def ended() -> np.ndarray:
        return (ensemble.consensus_round > 0) & (played >= min_rounds)

    play_to_end(more, played, max_rounds, n_agents, ended, report)
