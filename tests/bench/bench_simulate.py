"""Interactions a second: `validation.simulate` beside the same loop with `np.random` inside numba.

The policy conforms but errs too often to converge, so that every run plays all its rounds, convergence tests included.
"""

from __future__ import annotations

import time

import numba
import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

import meanfield
import validation
from meanfield.toolbox import space_of

MEMORY_LENGTH = 5
INTERACTIONS = 2 * 10**8


@numba.njit(parallel=True)
def plain_runs(states, q, successors, rounds, success):
    """The textbook version: no seed a run, doubles against doubles."""
    for run in numba.prange(states.shape[0]):
        n = states.shape[1]
        for _ in range(rounds):
            agreed = 0
            for _ in range(n):
                i = np.random.randint(0, n)  # noqa: NPY002 (what is compared with)
                j = np.random.randint(0, n - 1)  # noqa: NPY002
                if j >= i:
                    j += 1
                state_i, state_j = states[run, i], states[run, j]
                a = 0 if np.random.random() < q[state_i, 0] else 1  # noqa: NPY002
                b = 0 if np.random.random() < q[state_j, 0] else 1  # noqa: NPY002
                states[run, i] = successors[state_i] + 2 * a + b
                states[run, j] = successors[state_j] + 2 * b + a
                agreed += a == b
            success[run] = agreed


def erring_policy():
    """The majority of the partner's words remembered, with 20 % error."""
    space = meanfield.MemorySpace(2, MEMORY_LENGTH)
    lead = np.array([sum(1 - 2 * partner for _, partner in space.memory(s)) for s in range(space.n_states)])
    return meanfield.make_policy(0.5 + 0.3 * np.sign(lead), ["A", "B"])


@pytest.mark.bench
def test_interactions_a_second() -> None:
    policy = erring_policy()
    space = space_of(policy)
    successors = space.successors().astype(np.int16)
    q = policy["q"].values
    plain_runs(np.zeros((2, 4), np.int16), q, successors, 1, np.zeros(2))
    validation.simulate(policy, n_agents=4, runs=2, seed=0, max_rounds=5)

    table = Table(title=f"interactions a second, H = {MEMORY_LENGTH}, {numba.get_num_threads()} threads")
    for column in ("N", "runs", "validation.simulate", "np.random in numba", "ratio"):
        table.add_column(column, justify="right")
    for n in (24, 1000, 10_000, 1_000_000):
        runs = max(2, min(2000, 2_000_000 // n))
        rounds = max(1, INTERACTIONS // (runs * n))
        seconds = []
        for _ in range(2):
            begin = time.perf_counter()
            simulation = validation.simulate(policy, n_agents=n, runs=runs, seed=0, max_rounds=rounds)
            seconds.append(time.perf_counter() - begin)
        assert simulation["consensus_round"].isnull().all()
        speed = runs * rounds * n / min(seconds)
        states, plain_rounds = np.zeros((runs, n), np.int16), max(1, rounds // 4)
        begin = time.perf_counter()
        plain_runs(states, q, successors, plain_rounds, np.zeros(runs))
        plain = runs * plain_rounds * n / (time.perf_counter() - begin)
        table.add_row(f"{n:,}", f"{runs:,}", f"{speed:.2e}", f"{plain:.2e}", f"{speed / plain:.1f}")
    Console().print(table)
