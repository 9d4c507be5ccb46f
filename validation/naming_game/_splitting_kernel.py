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
def climb(active, game, division, flock, streams, highest, n_parts, longest, level):
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
        highest[run] = max(highest[run], height(states, parts[run], consensus, target, weights))
        while highest[run] <= level and consensus[0] == 0 and parts[run] < last:
            played, part, in_all = place_of(parts[run], division)
            n_interactions = (part + 1) * n_agents // in_all - part * n_agents // in_all
            met[:] = 0
            play(n_interactions, states, streams[run], n_words, met, game.edges, rules.thresholds, rules.successors)
            for word in range(n_words):
                before = agreed[played % ROUNDS_AVERAGED, word] if part > 0 else 0
                agreed[played % ROUNDS_AVERAGED, word] = before + met[(n_words + 1) * word]
            parts[run] += 1
            if part == in_all - 1:
                note_consensus(consensus, played + 1, test[0], test[1], agreed, states, rules.q)
            highest[run] = max(highest[run], height(states, parts[run], consensus, target, weights))
