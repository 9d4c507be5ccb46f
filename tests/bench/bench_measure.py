"""Number of memories that `measure` takes on tables of 1,365, beside as many in random order and breadth first.

The tables are the published ones and SmolLM2's. Two processes take about ten minutes for both goals.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
import pytest

import meanfield
from _tables import show
from meanfield import MemorySpace
from policy_extraction.measuring._active.explore import GoalExploration
from policy_extraction.measuring._active.goals import Goal, Quantity

SPACE = MemorySpace(2, 5)
SEED, TOLERANCE, PROCESSES = 0, 0.05, 2
WORDS = ("first", "second")
LARGEST_PART = 0.1  # of the table, in the median over all populations


class Replayed(NamedTuple):
    """Cost and results of the measurement of one population."""

    population: str
    quantity: str
    true: float
    value: float
    half: float
    error: float  # as of `error_of`
    memories: int
    seconds: float  # of one core, beside the model's answers
    held: list[bool]  # whether intervals held the true value, after each batch that gave one
    strong: bool  # whether the strong word is the right one
    others: dict[str, tuple[float, bool]]  # errors of other orders, and whether they have the right strong word


def tables(folder: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Names, and choice probabilities (S, 2); the published ones are in `folder`."""
    published = meanfield.datasets.llm_group_size(folder)
    models = [meanfield.datasets.smollm2(), *(each for _, each in published.groupby("model", squeeze=False))]
    for one in models:
        model = str(np.ravel(one["model"])[0])
        for pair in one["pair"].values:
            q = one["q"].sel(pair=pair).squeeze(drop=True).transpose("state", "word").values
            if np.isfinite(q).all():
                yield f"{model} {pair}", q


def replayed(population: str, q: np.ndarray, goal: Goal) -> Replayed | None:
    """Measure a table; None if the goal is not defined for it."""
    true = goal.of(meanfield.make_policy(q, WORDS))
    if not true.name:
        return None
    exploration = GoalExploration(lambda states: q[states], TOLERANCE, SEED, SPACE, WORDS, goal)
    began = process_time()
    after = list(exploration.run(SPACE.n_states))
    seconds = process_time() - began
    known = after[-1]
    held = [
        each.low <= true.value <= each.high and each.quantity.name == true.name
        for each in after
        if np.isfinite(each.high)
    ]
    n, random = len(exploration.order), np.random.default_rng(SEED)
    orders = {"random": random.permutation(SPACE.n_states)[:n], "breadth first": np.arange(n)}
    others = {}
    for name, order in orders.items():
        other = GoalExploration(lambda states: q[states], TOLERANCE, SEED, SPACE, WORDS, goal)
        other._measure(order, 0)
        other.n_measured = len(order)
        other._fit()
        found = goal.of(meanfield.make_policy(other.best(), WORDS))
        others[name] = error_of(found, true), found.strong == true.strong
    value, half = known.quantity.value, (known.high - known.low) / 2
    strong = known.quantity.strong == true.strong
    error, memories = error_of(known.quantity, true), exploration.n_measured
    return Replayed(population, true.name, true.value, value, half, error, memories, seconds, held, strong, others)


def error_of(found: Quantity, true: Quantity) -> float:
    """Relative as the tolerance is, for shares to the larger share; infinite if another quantity was found."""
    scale = max(true.value, 1 - true.value) if true.name == "word_share" else abs(true.value)
    return abs(found.value - true.value) / scale if found.name == true.name else np.inf


@pytest.mark.parametrize("goal", ["kappa", "strong word"])
def test_memories_for_a_goal(goal: str, data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("OMP", "OPENBLAS"):
        monkeypatch.setenv(f"{library}_NUM_THREADS", "1")  # of the processes below
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        every = [pool.submit(replayed, name, q, Goal(goal)) for name, q in tables(data_folder)]
        found = [each.result() for each in every]
    found = [each for each in found if each is not None]
    orders, rows = list(found[0].others), []
    for each in found:
        numbers = [f"{number:.4f}" for number in (each.true, each.value, each.half)]
        errors = [f"{size:.1%}" for size in (each.error, *(other for other, _ in each.others.values()))]
        rows.append([each.population, each.quantity, *numbers, each.memories, round(each.seconds), *errors])
    title = f"memories of {SPACE.n_states:,} for the goal '{goal}', 95 % interval of ±5 % for κ and shares"
    show(title, ("population", "", "true", "found", "±", "memories", "s", "error", *orders), rows)
    memories, seconds = (np.array([getattr(each, name) for each in found]) for name in ("memories", "seconds"))
    batches = [held for each in found for held in each.held]
    strong = {"": sum(each.strong for each in found)}
    strong |= {name: sum(each.others[name][1] for each in found) for name in orders}
    print(f"memories: median {np.median(memories):.0f}, largest {memories.max()}")
    print(f"seconds of one core: median {np.median(seconds):.0f}, largest {seconds.max():.0f}")
    print(f"intervals that hold: {sum(each.held[-1] for each in found)} of {len(found)} in the end,", end=" ")
    print(f"{sum(batches)} of {len(batches)} after a batch")
    print(f"strong words of {len(found)}: {strong}")
    assert np.median(memories) <= LARGEST_PART * SPACE.n_states
    assert strong[""] == max(strong.values())
