"""Finite groups without simulating them, beside the ensembles that say the same."""

from __future__ import annotations

import numpy as np
import pytest

import meanfield
from bench_engine import seconds, show
from meanfield import TIME_PER_ROUND
from validation import simulate

SIZES = (24, 100, 400)
RUNS = 10_000
ROUNDS = 2  # later on, the variance of {African, White} is off by more than the mean is
MEASURED_AT = 50  # agents: the error of the mean there is some ten standard errors of 500,000 runs


@pytest.mark.bench
def test_group_size_law(published) -> None:
    """κ, which holds for all sizes, beside runs to consensus; a fraction of 10,000 has a standard error of 0.005."""
    policy = published.sel(model="gpt-4o", pair="African/White")
    meanfield.group_size_law(policy)
    simulate(policy, n_agents=2, runs=1, seed=0)
    rows = [("κ, compiled", seconds(lambda: meanfield.group_size_law(policy)))]
    for n in SIZES:
        rows.append((f"{RUNS:,} runs, N = {n}", seconds(lambda n=n: simulate(policy, n_agents=n, runs=RUNS, seed=1))))
    show("chance to end at the strong word, GPT-4o {African, White}", rows)


@pytest.mark.bench
def test_finite_size(published) -> None:
    """The mean to order 1/N beside the ensemble whose standard error is the error of that order.

    The error falls like 1/N²: measured at one size, it is known at others.
    """
    policy = published.sel(model="gpt-4o", pair="African/White")
    times = np.array([TIME_PER_ROUND * ROUNDS])
    sizes = (*SIZES, MEASURED_AT)
    theory = meanfield.finite_size(policy, n_agents=sizes, times=times).isel(time=0, word=0)
    error = abs(simulated_mean(policy, MEASURED_AT, 500_000) - theory["mean"].sel(n_agents=MEASURED_AT).item())
    rows = [("mean and variance for all N, compiled", seconds(lambda: meanfield.finite_size(policy, times=times)))]
    for n in SIZES:
        accuracy = error * (MEASURED_AT / n) ** 2
        runs = max(1, round(theory["variance"].sel(n_agents=n).item() / accuracy**2))
        time = seconds(lambda n=n, runs=runs: simulated_mean(policy, n, runs), repeat=1)
        rows.append((f"{runs:,} runs, N = {n}: ± {accuracy:.1g}", time))
    show(f"word share after {ROUNDS} rounds, GPT-4o {{African, White}}", rows)


def simulated_mean(policy, n_agents: int, runs: int) -> float:
    """Mean share of the first word after `ROUNDS` rounds."""
    result = simulate(policy, n_agents=n_agents, runs=runs, seed=1, max_rounds=ROUNDS, record_rounds=ROUNDS)
    return result["word_share"].isel(n_agents=0, round=-1, word=0).mean().item()
