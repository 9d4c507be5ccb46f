"""Reaction models of finite populations, with the number of interactions that took some channels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield import ReactionModel
from validation.reactions._models import reaction_outcomes
from validation.reactions._protocol import Plan, play_protocol

COUNTER_BITS = 63


class ReactionRuns(NamedTuple):
    """Runs of a reaction model.

    Attributes
    ----------
    counts
        Shape (run, round, K), int32, numbers of agents; round 0 is the start.
    events
        Shape (run, round, E), int32, how many interactions of the round took a channel of the event; 0 in round 0.
    """

    counts: np.ndarray
    events: np.ndarray


def play_reactions(
    model: ReactionModel,
    start: np.ndarray,
    counted: np.ndarray,
    runs: int,
    seed: int,
    rounds: int,
    progress: bool = False,
) -> ReactionRuns:
    """`runs` runs of `rounds` rounds of N interactions each, as `validation.reactions.simulate` plays them.

    Parameters
    ----------
    model
        The reaction model.
    start
        Shape (K,), numbers of agents; at most `most_agents` in all.
    counted
        Shape (E, M), whether an encounter by the channel counts as the event.
    """
    counted = np.asarray(counted, dtype=np.int64)
    # One sum of integers has room for the numbers of all events, side by side: none exceeds N a round.
    width = _width(len(counted))
    shifts = width * np.arange(len(counted), dtype=np.int64)
    outcomes = reaction_outcomes(model, marks=(counted << shifts[:, None]).sum(0))
    played = play_protocol(outcomes, start, Plan(int(start.sum()), runs, seed, rounds, rounds, progress))
    events = (played.marked[..., None] >> shifts) & (2**width - 1)
    return ReactionRuns(played.recorded.astype(np.int32), events.astype(np.int32))


def most_agents(n_events: int) -> int:
    """The largest population in which so many kinds of events can be counted."""
    return 2 ** _width(n_events) - 1


def _width(n_events: int) -> int:
    return COUNTER_BITS // max(1, n_events)
