"""Seconds of `fixed_points` for policies that are worse than reality, by family; ratios to a noisy majority."""

import itertools
import time

import numpy as np
import pytest

import meanfield
from _battery import FAMILIES, battery

pytestmark = pytest.mark.bench


@pytest.mark.parametrize(("length", "number"), [(3, 140), (5, 140), (6, 28)])
def test_fixed_points_of_the_battery(length, number):
    meanfield.fixed_points(next(battery(1, 2, length))[1])
    seconds, hidden = {family: [] for family in FAMILIES}, []
    for family, policy in battery(number, 2, length):
        start = time.perf_counter()
        try:
            meanfield.fixed_points(policy)
        except meanfield.ConvergenceError as error:
            hidden.append(f"{error}")
        seconds[family].append(time.perf_counter() - start)
    unit = np.median(seconds["noisy_majority"])
    print(f"\nfixed_points with eigenvalues, H = {length}, {number} policies, {len(hidden)} of them hidden by rounding")
    print(f"{'family':20} {'median, s':>10} {'worst, s':>10} {'ratio':>7}")
    for family, times in {**seconds, "all": [*itertools.chain(*seconds.values())]}.items():
        print(f"{family:20} {np.median(times):10.3f} {max(times):10.3f} {np.median(times) / unit:7.2f}")
    assert len(hidden) <= number / 100 and all("rounding hides" in one for one in hidden)
