"""Interactions a second of the two engines of `validation.simulate`, on whatever device JAX finds.

With a GPU, and JAX for it (pip install "jax[cuda12]"), the last row of this is 100,000 runs of 24 agents, 10^9 and more
interactions:

    .venv/bin/pytest -o addopts= -m bench -s tests/bench/bench_jax_engine.py

The policy conforms but errs too often to converge, so that every run plays all its rounds, convergence tests included.
Compilation is left out: each engine plays the same ensemble once before.
"""

from __future__ import annotations

import time

import jax
import numba
import numpy as np
import pytest
import xarray as xr
from rich.console import Console
from rich.table import Table

import meanfield
import validation

MEMORY_LENGTH = 5
INTERACTIONS = {"cpu": 2 * 10**7, "gpu": 2 * 10**9}  # a second or so each
SIZES = ((1000, 1000), (10_000, 100), (24, 1000), (24, 100_000))  # N, runs


def erring() -> xr.Dataset:
    """The majority of the partner's words remembered, with 20 % error."""
    space = meanfield.MemorySpace(2, MEMORY_LENGTH)
    lead = np.array([sum(1 - 2 * partner for _, partner in space.memory(s)) for s in range(space.n_states)])
    return meanfield.make_policy(0.5 + 0.3 * np.sign(lead), ["A", "B"])


def interactions_a_second(engine: str, policy: xr.Dataset, n: int, runs: int, interactions: int) -> float:
    rounds, seconds = max(4, interactions // (n * runs)), []
    for _ in range(3):
        begin = time.perf_counter()
        played = validation.simulate(policy, n_agents=n, runs=runs, seed=0, max_rounds=rounds, engine=engine)
        seconds.append(time.perf_counter() - begin)
    assert played["consensus_round"].isnull().all()
    return runs * rounds * n / min(seconds[1:])


@pytest.mark.bench
def test_engines_interactions_a_second() -> None:
    policy, device = erring(), jax.devices()[0]
    table = Table(title=f"interactions a second, H = {MEMORY_LENGTH}, {device.device_kind}")
    for column in ("N", "runs", "jax", f"numba, {numba.get_num_threads()} threads", "ratio"):
        table.add_column(column, justify="right")
    for n, runs in SIZES:
        ours = interactions_a_second("jax", policy, n, runs, INTERACTIONS.get(device.platform, 2 * 10**7))
        theirs = interactions_a_second("numba", policy, n, runs, 2 * 10**8)
        table.add_row(f"{n:,}", f"{runs:,}", f"{ours:.2e}", f"{theirs:.2e}", f"{ours / theirs:.2f}")
    Console().print(table)
