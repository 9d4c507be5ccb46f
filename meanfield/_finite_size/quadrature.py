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


def weights_of(time: Float[np.ndarray, " nodes"]) -> Float[np.ndarray, " nodes"]:
    """The same for any increasing times, from the cubic polynomials through four nodes about each step."""
    steps = np.diff(time)
    nodes = np.clip(np.arange(len(steps)) - 1, 0, len(time) - 4)[:, None] + np.arange(4)
    place = (time[nodes] - time[:-1, None]) / steps[:, None]
    parts = np.linalg.solve(place[:, None] ** np.arange(4)[:, None], 1 / np.arange(1.0, 5)[:, None])[..., 0]
    return np.bincount(nodes.ravel(), (parts * steps[:, None]).ravel(), len(time))
