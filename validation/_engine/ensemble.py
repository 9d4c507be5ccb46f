"""The loop of all ensembles: portions of runs bound memory, and short calls can be interrupted."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from meanfield.toolbox import in_threads

STATE_BYTES = 2**26  # of agents' states held at once; a single run may need more
INTERACTIONS_A_CALL = 2 * 10**7  # a call into compiled code can't be interrupted: a tenth of a second, 2 s at N = 10^7
INTERACTIONS_A_NUMBER = 64  # in the time in which a thread is taken to work on one number


@contextmanager
def collection_paused() -> Iterator[None]:
    """No garbage collection within, which takes half of the time in which numba sets itself up in a process."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def portions(runs: int, bytes_a_run: int, fewest: int = 1) -> Iterator[slice]:
    """Slices of the runs whose states fit `STATE_BYTES`, each of at least `fewest` runs."""
    size = max(fewest, STATE_BYTES // bytes_a_run)
    for first in range(0, runs, size):
        yield slice(first, min(first + size, runs))


def play_to_end(
    advance: Callable[[np.ndarray, int], object],
    played: np.ndarray,
    longest: int,
    cost: int,
    ended: Callable[[], np.ndarray],
    report: Callable[[int], object],
    prepare: Callable[[np.ndarray], object] = lambda active: None,
) -> None:
    """Play the runs of a portion until each has ended or has played `longest` rounds.

    Parameters
    ----------
    advance
        Plays up to so many more rounds in the runs with these numbers, and counts them in `played`.
    played
        Rounds played, shape (runs,).
    longest
        Most rounds of a run.
    cost
        Interactions in a round.
    ended
        Returns which runs have ended, shape (runs,).
    report
        Receives how many more rounds are settled; a run that has ended settles all of its rounds.
    prepare
        Receives the numbers of the runs that are about to be advanced.
    """
    active, settled = np.flatnonzero(played < longest), 0
    while active.size:
        left = longest - int(played[active].min())
        n_rounds = min(left, max(1, INTERACTIONS_A_CALL // (active.size * cost)))
        prepare(active)
        in_threads(
            partial(_advance_some, advance, active, n_rounds), active.size, n_rounds * cost // INTERACTIONS_A_NUMBER
        )
        over = ended() | (played >= longest)
        active = np.flatnonzero(~over)
        before, settled = settled, int(np.where(over, longest, played).sum())
        report(settled - before)


def _advance_some(advance: Callable, active: np.ndarray, n_rounds: int, some: slice) -> None:
    advance(active[some], n_rounds)
