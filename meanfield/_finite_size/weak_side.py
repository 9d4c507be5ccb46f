"""How far N agents have come on their way to the weak side of the saddle.

Along the least-noise path x_c(t), p(t)·x changes by noise alone. From t on its variance, per 1/N, is the integral of
pᵀDp, which is -p(t)·x_c(t). To leading order, a population x at time t ends at the weak side with the chance Φ(√N ξ),

    ξ(x, t) = p(t)·x / √(-p(t)·x_c(t)).

From empty memories ξ is -κ at t = 0, on the path it rises to 0, and without noise it falls. Late ξ is the left
eigenvector of the saddle's unstable direction, up to a factor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float

from meanfield._finite_size.law_path import LawPath, law_path
from meanfield._finite_size.least_action_path import LeastActionPath
from meanfield._numerics.course import Vector
from meanfield._population.single_policy import single_policy, words_of

FADED = 1e-4  # of the path's noise: later than this ξ has its last weights


class WeakSide(NamedTuple):
    """ξ(x, t) = weights(t)·x, with the last weights for all later times."""

    word: str  # said more often at the weak side
    times: Vector
    weights: Float[np.ndarray, "times states"]


def weak_side(policy: xr.Dataset) -> WeakSide | None:
    """ξ for agents who start with empty memories; None if the policy has no group-size law, or an infinite κ.

    On a path of least action ξ² is the action that is left, up to a factor.
    """
    policy = single_policy(policy)
    found = law_path(policy) if policy.sizes["word"] == 2 else None
    if not isinstance(found, LawPath):
        return None
    times, p = _times(found), found.path.p
    noise = -(p * found.path.x).sum(1)
    faded = noise < FADED * noise[0]
    kept = max(1, int(np.argmax(faded))) if faded.any() else len(noise)
    # Fixed points come by falling share of the first word
    word = words_of(policy)[1 if found.strong == 0 else 0]
    return WeakSide(word, times[:kept], p[:kept] / np.sqrt(noise[:kept, None]))


def _times(found: LawPath) -> Vector:
    path = found.path
    if not isinstance(path, LeastActionPath):
        return path.step * np.arange(len(path.x))
    pace = path.weights.copy()
    pace[[0, -1]] *= 2  # as the weights of a trapezoidal rule its ends are halves
    return np.cumsum(pace) - (pace[0] + pace) / 2
