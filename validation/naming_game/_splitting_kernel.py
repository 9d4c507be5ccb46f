"""Runs of the naming game that are stopped on their way: as soon as they are above a level of a coordinate."""

from __future__ import annotations

import numpy as np
from numba import njit

from validation.naming_game._convention import ROUNDS_AVERAGED
from validation.naming_game._kernel import note_consensus, play


@njit(cache=True)
def height(states, parts, consensus, target, weights):
    """Where a run is: +∞ at consensus on the word `target`, -∞ on another, else the mean of its agents' weights."""
    if consensus[0] > 0:
        return np.inf if consensus[1] == target else -np.inf
    row = min(parts, weights.shape[0] - 1)
    total = 0.0
    for agent in range(states.size):
        total += weights[row, np.uint64(states[agent])]
    return total / states.size


@njit(cache=True)
def place_of(parts, division):
    """Rounds played, the number of the next part in its round, and the parts of this round."""
    first, later = division
    if parts < first:
        return 0, parts, first
    return 1 + (parts - first) // later, (parts - first) % later, later


@njit(cache=True, nogil=True)
def climb(
    active,
    states,
    agreed,
    consensus,
    parts,
    streams,
    highest,
    n_parts,
    longest,
    level,
    division,
    target,
    weights,
    test,
    edges,
    thresholds,
    successors,
    q,
):
    """Plays up to `n_parts` more parts of rounds of the runs `active`, until each is above `level` or at consensus.

    `division` is the number of parts of the first round, and of each later one. `parts` (run,) counts the parts played,
    which may differ, at most `longest`; after each, `highest` (run,) receives where the run is if it is higher.
    `weights` (time, state) has a row for each number of parts, the last for all later ones. The other arrays are those
    of `advance`.
    """
    n_agents, n_words = states.shape[1], agreed.shape[2]
    met = np.empty(n_words * n_words, np.int64)
    for k in range(active.size):
        run = active[k]
        last = min(parts[run] + n_parts, longest)
        highest[run] = max(highest[run], height(states[run], parts[run], consensus[run], target, weights))
        while highest[run] <= level and consensus[run, 0] == 0 and parts[run] < last:
            played, part, in_all = place_of(parts[run], division)
            n_interactions = (part + 1) * n_agents // in_all - part * n_agents // in_all
            met[:] = 0
            play(n_interactions, states[run], streams[run], n_words, met, edges, thresholds, successors)
            for word in range(n_words):
                before = agreed[run, played % ROUNDS_AVERAGED, word] if part > 0 else 0
                agreed[run, played % ROUNDS_AVERAGED, word] = before + met[(n_words + 1) * word]
            parts[run] += 1
            if part == in_all - 1:
                note_consensus(consensus[run], played + 1, test[0], test[1], agreed[run], states[run], q)
            highest[run] = max(highest[run], height(states[run], parts[run], consensus[run], target, weights))
