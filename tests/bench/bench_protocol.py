"""Interactions a second of population protocols: agent by agent and in batches, for the two-word minimal naming game.

Two rounds from 60 % of agents with the one word and 40 % with the other, so that agents change all the time: near
consensus, where hardly anything happens, batches are faster.
"""

from __future__ import annotations

import time

import numba
import pytest
from rich.console import Console
from rich.table import Table

import theory
from validation import reactions

TRANSITIONS = [
    row[:3]
    for row in theory.minimal_naming_game.interactions(
        theory.minimal_naming_game.two_word_agents()[:3], lambda held: {word: 1 / len(held) for word in held}
    )
]
ROUNDS = 2
AGENTS_BUDGET = 5 * 10**7  # interactions to play agent by agent, but one run a thread at least
EPOCHS_BUDGET = 2 * 10**5  # times sqrt(N) interactions in batches, likewise


def interactions_a_second(n: int, method: str, budget: float) -> float:
    threads = numba.get_num_threads()
    runs = threads * max(1, int(budget / (ROUNDS * n * threads)))
    begin = time.perf_counter()
    reactions.simulate(TRANSITIONS, [6 * n // 10, 4 * n // 10, 0], runs=runs, seed=0, max_rounds=ROUNDS, method=method)
    return runs * ROUNDS * n / (time.perf_counter() - begin)


@pytest.mark.bench
def test_interactions_a_second() -> None:
    for method in ("agents", "batches"):
        interactions_a_second(10, method, 1)
    table = Table(title=f"interactions a second, 3 states, {numba.get_num_threads()} threads")
    for column in ("N", "agents", "batches", "ratio"):
        table.add_column(column, justify="right")
    for n in (10**3, 10**4, 10**5, 10**6, 10**7, 10**8):
        agents = interactions_a_second(n, "agents", AGENTS_BUDGET)
        batches = interactions_a_second(n, "batches", EPOCHS_BUDGET * n**0.5)
        table.add_row(f"{n:,}", f"{agents:.2e}", f"{batches:.2e}", f"{batches / agents:.2f}")
    Console().print(table)
