"""Ensembles of minimal naming games of up to 64 words, agent by agent, in portions that can be interrupted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numba
import numpy as np
from tqdm.auto import tqdm

from meanfield.toolbox import LARGEST_SEED, whole_number
from theory.streams import seed_streams
from validation._engine.arguments import check_protocol_runs
from validation._engine.ensemble import play_to_end, portions
from validation._engine.thresholds import word_thresholds
from validation.minimal_naming_game._inventories_kernel import advance
from validation.reactions._kernel import Runs

MOST_WORDS = 64  # bits of an inventory
INVENTORY_TYPES = (np.uint8, np.uint16, np.uint32, np.uint64)


class Game(NamedTuple):
    """What stays the same in all runs, in the order in which the kernel takes it."""

    n_free: int  # agents who are not committed, the first of all
    lexicon: np.uint64  # all W words
    first_word: np.uint64  # threshold of 63 bits for the first of two words
    listener_only: bool


def play_inventories(
    singles: Sequence[int],
    zealots: Sequence[int],
    n_agents: int,
    p: float,
    rule: str,
    runs: int,
    seed: int,
    max_rounds: int,
    record_rounds: int | None,
    progress: bool = False,
) -> Runs:
    """`runs` runs of the minimal naming game, with the arguments of `simulate`, as arrays.

    `singles` and `zealots` are the numbers of free and of committed agents who hold each single word at the start; the
    others hold none. What is final or recorded are the numbers of agents who hold each word only; in `counts` that of
    the others follows. Marked interactions are the successes, groups the words.
    """
    runs = whole_number("runs", runs, 1)
    seed = whole_number("seed", seed, 0, LARGEST_SEED)
    max_rounds = whole_number("max_rounds", max_rounds, 1, 2**62 // n_agents)
    agents = _start(singles, zealots, n_agents)
    n_words = len(singles)
    first_word = word_thresholds(np.array([[p, 1 - p]]))[0, 0]
    game = Game(n_agents - sum(zealots), np.uint64(2**n_words - 1), first_word, rule == "listener")
    start = np.add(singles, zealots, dtype=np.int64)
    recorded = 0 if record_rounds is None else record_rounds + 1
    check_protocol_runs(runs, n_words, recorded, n_words)
    played = Runs(
        streams=seed_streams(seed, n_agents, np.arange(runs)),
        counts=np.tile(np.append(start, n_agents - start.sum()), (runs, 1)),
        played=np.zeros(runs, np.int64),
        absorbed=np.full((runs, 2), -1),
        final=np.tile(start, (runs, 1)),
        recorded=np.empty((runs, recorded, n_words), np.int64),
        marked=np.zeros((runs, recorded), np.int64),
    )
    with tqdm(total=runs * max_rounds, disable=not progress, unit="round", leave=False) as bar:
        for some in portions(runs, agents.nbytes, numba.get_num_threads()):
            part = Runs(*(values[some] for values in played))
            _play_portion(part, np.tile(agents, (len(part.played), 1)), game, max_rounds, bar.update)
    return played


def _start(singles: Sequence[int], zealots: Sequence[int], n_agents: int) -> np.ndarray:
    """Inventories (N,): first of the free agents, then of the committed ones."""
    n_words = len(singles)
    # The narrowest type that holds W bits: large populations are as fast as they fit into caches.
    kind = next(kind for kind in INVENTORY_TYPES if n_words <= np.iinfo(kind).bits)
    words = np.uint64(1) << np.arange(n_words, dtype=np.uint64)
    empty = n_agents - sum(singles) - sum(zealots)
    held = np.concatenate([words, np.zeros(1, np.uint64), words]).astype(kind)
    return np.repeat(held, [*singles, empty, *zealots])


def _play_portion(part: Runs, agents: np.ndarray, game: Game, max_rounds: int, report: Callable[[int], object]) -> None:
    """Plays the runs of `part` to their ends; `report` is told how many rounds are now settled."""
    min_rounds = part.marked.shape[1] - 1

    def more(active: np.ndarray, n_rounds: int) -> None:
        results = part.counts, part.played, part.absorbed, part.final, part.recorded, part.marked
        advance(active, agents, part.streams, *results, *game, n_rounds, min_rounds)

    def ended() -> np.ndarray:
        return (part.absorbed[:, 0] >= 0) & (part.played >= min_rounds)

    play_to_end(more, part.played, max_rounds, agents.shape[1], ended, report)
    lasting = part.absorbed[:, 0] < 0
    part.final[lasting] = part.counts[lasting, :-1]
