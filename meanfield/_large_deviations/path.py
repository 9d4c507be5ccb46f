"""A path out of an attractor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from meanfield._finite_size.quadrature import weights_of

Trajectory = Float[np.ndarray, "nodes states"]


class Path(NamedTuple):
    """A path and its momentum at nodes, in the states of a face."""

    time: Float[np.ndarray, " nodes"]
    x: Trajectory
    p: Trajectory
    action: Float[np.ndarray, " nodes"]  # ∫ p·dx from the attractor
    h: Float[np.ndarray, " nodes"]  # the Hamiltonian, 0 on the exact path
    barrier: float  # action up to the saddle
    error: float  # of the barrier
    weight: Float[np.ndarray, " nodes"]  # in integrals over all times


def all_weights(time: Float[np.ndarray, " nodes"], decay: float, growth: float) -> Float[np.ndarray, " nodes"]:
    """Weights of nodes in integrals of what has grown and decays like the momentum, at these rates, outside."""
    weights = weights_of(time)
    weights[[0, -1]] += 1 / decay, 1 / growth
    return weights
