"""The progress of N agents towards the weak side of the saddle.

On the optimal path x_c(t) the action still to come is S(t) = -p(t)·x_c(t). Next to the path it is S - p·(x - x_c), so
that a population x at time t ends at the weak side with the probability Φ(√N ξ) to leading order,

    ξ(x, t) = (p(t)·x - S(t)) / √(2 S(t)).

From empty memories ξ is -κ at t = 0, on the path it rises to 0, and without noise it falls. Late ξ is the left
eigenvector of the saddle's unstable direction, up to a factor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float

from meanfield._finite_size.law_path import LawPath, law_path
from meanfield._numerics.trajectory import Vector
from meanfield._population.single_policy import single_policy

FADED = 1e-4  # of the action: later than this ξ has its last weights


class WeakSide(NamedTuple):
    """ξ(x, t) = weights(t)·x, with the last weights for all later times."""

    word: str  # said more often at the weak side
    times: Vector
    weights: Float[np.ndarray, "times states"]


def weak_side(policy: xr.Dataset) -> WeakSide | None:
    """ξ for agents who start with empty memories; None if the policy has no group-size law, or an infinite κ."""
    policy = single_policy(policy)
    found = law_path(policy) if policy.sizes["word"] == 2 else None
    if not isinstance(found, LawPath):
        return None
    path = found.path
    x, p = path.x[:, 0], path.p[:, 0]
    left = -(p * x).sum(1)
    faded = left < FADED * left[0]
    kept = max(1, int(np.argmax(faded))) if faded.any() else len(left)
    left = left[:kept, None]
    return WeakSide(found.words[1], path.time[:kept], (p[:kept] - left) / np.sqrt(2 * left))
