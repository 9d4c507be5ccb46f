"""Mechanism 1 recovered from data simulated at known parameters: do the intervals cover the truth at their level?

Three parameters that such data do determine are free: the coupling, the rival's mean field, and the width of the
neutral fields. Data of the paper's size, 40 seeds at each of six N, and of 100 times that, each 50 times.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from _tables import show
from theory.flag_game import mechanism1
from theory.flag_game.mechanism1 import APPENDIX_E
from validation import flag_game

SIZES = (4, 8, 16, 32, 64, 128)
FREE = ("mean_R", "sd_0", "J")
REPETITIONS = 50
LEVEL = 0.95
PAPER_SEEDS = 40
# Not at the truth, or a fit that stays where it starts would pass.
START = replace(APPENDIX_E, mean_R=-0.2, sd_0=1.4, J=2.7)


def recovered(seeds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimates and standard errors (repetitions, free), and whether the intervals cover the truth."""
    estimate, error, covered = (np.empty((REPETITIONS, len(FREE))) for _ in range(3))
    truth = np.array([getattr(APPENDIX_E, name) for name in FREE])
    for k in range(REPETITIONS):
        data = flag_game.simulate(n_agents=SIZES, runs=seeds, seed=10_000 + k)
        fit = mechanism1.fit(data, free=FREE, start=START, starts=0, runs=4000, bootstrap=0, level=LEVEL, seed=k)
        found = fit.sel(parameter=list(FREE))
        estimate[k], error[k] = found["estimate"], found["standard_error"]
        low, high = found["interval"].values.T
        covered[k] = (low <= truth) & (truth <= high)
    return estimate, error, covered


@pytest.mark.parametrize("factor", [1, 100])
def test_intervals_cover_the_truth(factor: int) -> None:
    begin = time.perf_counter()
    estimate, error, covered = recovered(factor * PAPER_SEEDS)
    seconds = (time.perf_counter() - begin) / REPETITIONS
    rows = []
    for i, name in enumerate(FREE):
        numbers = (getattr(APPENDIX_E, name), estimate[:, i].mean(), estimate[:, i].std(ddof=1), error[:, i].mean())
        rows.append((name, *(f"{number:.4f}" for number in numbers), f"{int(covered[:, i].sum())}/{REPETITIONS}"))
    title = f"{factor * PAPER_SEEDS} seeds at each N, {REPETITIONS} repetitions, {seconds:.1f} s each"
    show(title, ("", "truth", "mean estimate", "standard deviation", "mean standard error", "covered"), rows)
    for i in range(len(FREE)):
        # One in 1,000 for each of six tests
        assert binomtest(int(covered[:, i].sum()), REPETITIONS, LEVEL).pvalue > 1e-3
    assert (np.abs(estimate.mean(0) - [getattr(START, name) for name in FREE]) > 2 * error.mean(0)).any()
