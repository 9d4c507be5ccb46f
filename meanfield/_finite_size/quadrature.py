"""Integrals over the nodes of a path."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

GREGORY = (3 / 8, 7 / 6, 23 / 24)  # weights of the first nodes and of the last, of order four


def quadrature(pace: Float[np.ndarray, " nodes"]) -> Float[np.ndarray, " nodes"]:
    """The weights of nodes in integrals over time; `pace` is the length of a step at each."""
    weights = pace.copy()
    for k, part in enumerate(GREGORY):
        weights[[k, -1 - k]] *= part
    return weights
