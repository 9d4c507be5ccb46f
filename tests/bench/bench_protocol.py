"""Interactions a second of population protocols: agent by agent and in batches, for the two-word minimal naming game.

From equal numbers of single-word agents; a fixed number of rounds, so that none stops early. One run a thread.
"""

from __future__ import annotations

import time

import numba
import pytest
from rich.console import Console
from rich.table import Table

import theory
from validation._protocol import simulate_protocol

TRANSITIONS = [
    row[:3]
    for row in theory.minimal_interactions(
        theory.minimal_two_word_agents()[:3], lambda held: {word: 1 / len(held) for word in held}
    )
]
AGENTS_BUDGET = 5 * 10**7  # interactions to play agent by agent, but one round at least
BATCHES_BUDGET = 2 * 10**5  # batches, likewise


def interactions_a_second(n: int, method: str, rounds: int) -> float:
    runs = numba.get_num_threads()
    begin = time.perf_counter()
    simulate_protocol(TRANSITIONS, [n // 2, n // 2, 0], runs=runs, seed=0, max_rounds=rounds, method=method)
    return runs * rounds * n / (time.perf_counter() - begin)


@pytest.mark.bench
def test_interactions_a_second() -> None:
    for method in ("agents", "batches"):
        interactions_a_second(10, method, 1)
    table = Table(title=f"interactions a second, 3 states, {numba.get_num_threads()} threads")
    for column in ("N", "agents", "batches", "ratio"):
        table.add_column(column, justify="right")
    for n in (10**3, 10**4, 10**5, 10**6, 10**7, 10**8):
        agents = interactions_a_second(n, "agents", max(1, AGENTS_BUDGET // n))
        batches = interactions_a_second(n, "batches", max(1, int(BATCHES_BUDGET * 0.63 / n**0.5)))
        table.add_row(f"{n:,}", f"{agents:.2e}", f"{batches:.2e}", f"{batches / agents:.2f}")
    Console().print(table)
