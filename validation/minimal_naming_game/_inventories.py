"""Minimal naming games of up to 64 words, agent by agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from validation._engine.thresholds import word_thresholds
from validation.minimal_naming_game._inventories_kernel import advance
from validation.reactions._kernel import Runs
from validation.reactions._protocol import Plan, play_runs

MOST_WORDS = 64  # bits of an inventory
INVENTORY_TYPES = (np.uint8, np.uint16, np.uint32, np.uint64)


class Game(NamedTuple):
    """The rules of all runs, in the order in which the kernel takes them."""

    n_free: int  # agents who are not committed, the first of all
    lexicon: np.uint64  # all W words
    first_word: np.uint64  # threshold of 63 bits for the first of two words
    first_invented: np.uint64  # the same, of an agent without words
    listener_only: bool
    stores_invented: bool
    if_held: np.uint64  # thresholds of 63 bits for a yes to a word that the hearer holds, and to another one
    if_new: np.uint64


def play_inventories(
    singles: Sequence[int],
    zealots: Sequence[int],
    biases: tuple[float, float],
    rule: str,
    stores_invented: bool,
    accepts: tuple[float, float],
    plan: Plan,
) -> Runs:
    """Runs of the minimal naming game.

    `singles` and `zealots` are the numbers of free and of committed agents who hold each single word at the start; the
    others hold none. `final` and `recorded` are the numbers of agents who hold each word only; in `counts` the number
    of all others follows. Successes are the marked interactions, words the groups.
    """
    plan = plan.checked(len(singles), len(singles))
    agents = _start(singles, zealots, plan.n_agents)
    n_words = len(singles)
    first_word, first_invented, *yes = word_thresholds(np.array([[p, 1 - p] for p in (*biases, *accepts)]))[:, 0]
    lexicon = np.uint64(2**n_words - 1)
    n_free = plan.n_agents - sum(zealots)
    game = Game(n_free, lexicon, first_word, first_invented, rule == "listener", stores_invented, *yes)
    start = np.add(singles, zealots, dtype=np.int64)
    counts = np.append(start, plan.n_agents - start.sum())

    def more(active: np.ndarray, part: Runs, agents: np.ndarray, n_rounds: int, min_rounds: int) -> None:
        advance(active, part, agents, *game, n_rounds, min_rounds)

    return play_runs(plan, counts, start, n_words, agents, plan.n_agents, more)


def _start(singles: Sequence[int], zealots: Sequence[int], n_agents: int) -> np.ndarray:
    """Inventories (N,): first of the free agents, then of the committed ones."""
    n_words = len(singles)
    # The narrowest type that holds W bits: large populations are as fast as they fit into caches.
    kind = next(kind for kind in INVENTORY_TYPES if n_words <= np.iinfo(kind).bits)
    words = np.uint64(1) << np.arange(n_words, dtype=np.uint64)
    empty = n_agents - sum(singles) - sum(zealots)
    held = np.concatenate([words, np.zeros(1, np.uint64), words]).astype(kind)
    return np.repeat(held, [*singles, empty, *zealots])
