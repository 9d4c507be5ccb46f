"""A path out of an attractor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Course = Float[np.ndarray, "nodes states"]


class Path(NamedTuple):
    """A path and its momentum at nodes, in the states of a face."""

    time: Float[np.ndarray, " nodes"]
    x: Course
    p: Course
    action: Float[np.ndarray, " nodes"]  # ∫ p·dx from the attractor
    h: Float[np.ndarray, " nodes"]  # the Hamiltonian, 0 on the exact path
    barrier: float  # action up to the saddle
    error: float  # of the barrier
