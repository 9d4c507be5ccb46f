"""One step of Tsitouras' pair of orders 5 and 4.

Source: Computers & Mathematics with Applications 62, 770 (2011).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

MAX_STEPS = 1_000_000
STAGES = (
    np.array([0.161]),
    np.array([-0.008480655492356989, 0.335480655492357]),
    np.array([2.8971530571054935, -6.359448489975075, 4.3622954328695815]),
    np.array([5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525]),
    np.array([5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383]),
    np.array([0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774]),
)
STAGE_TIMES = np.array([0.0, *(weights.sum() for weights in STAGES)])
# Of order 5 less of order 4
ERROR = np.array(
    [
        0.0017800110522257714,
        0.0008164344596567469,
        -0.007880878010261995,
        0.1447110071732629,
        -0.5823571654525552,
        0.45808210592918697,
        -1 / 66,
    ]
)
# b_i(θ) = Σ_n INTERPOLANT[i, n] θ^(n + 1)
INTERPOLANT = np.array(
    [
        [1.0, -2.763706197274826, 2.9132554618219126, -1.0530884977290216],
        [0.0, 0.1317, -0.2234, 0.1017],
        [0.0, 3.9302962368947516, -5.941033872131505, 2.490627285651253],
        [0.0, -12.411077166933676, 30.33818863028232, -16.548102889244902],
        [0.0, 37.50931341651104, -88.1789048947664, 47.37952196281928],
        [0.0, -27.896526289197286, 65.09189467479366, -34.87065786149661],
        [0.0, 1.5, -4.0, 2.5],
    ]
)


class Tolerances(NamedTuple):
    """Tolerances of the step size control, relative and absolute."""

    rtol: float
    atol: float


def runge_kutta(
    rate: Callable[[np.ndarray, int], np.ndarray], x: np.ndarray, slope: np.ndarray, step: float
) -> np.ndarray:
    """x after one step, from the slope there; `rate` is told the number of the stage."""
    k = np.empty((len(STAGES), *x.shape))
    k[0] = slope
    after = x
    for stage, weights in enumerate(STAGES, 1):
        after = (weights @ k[:stage].reshape(stage, -1)).reshape(x.shape)
        after *= step
        after += x
        if stage < len(STAGES):
            k[stage] = rate(after, stage)
    return after
