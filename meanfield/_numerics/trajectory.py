"""Vectors over time, at the nodes of a grid and halfway between."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

Vector = Float[np.ndarray, " states"]
Trajectory = Float[np.ndarray, "nodes states"]
Halves = Float[np.ndarray, "halves states"]

# Weights of six nodes: for the middle between the two in the middle, and for the first two middles
STENCIL = np.array([3.0, -25.0, 150.0, 150.0, -25.0, 3.0]) / 256
GREGORY = (3 / 8, 7 / 6, 23 / 24)  # weights of the first nodes and of the last in an integral, of order four
EDGE = np.array([[63.0, 315.0, -210.0, 126.0, -45.0, 7.0], [-7.0, 105.0, 210.0, -70.0, 21.0, -3.0]]) / 256


def middles(values: Trajectory) -> Float[np.ndarray, "steps states"]:
    """Values halfway between nodes, of order six."""
    n_steps = len(values) - 1
    middle = np.empty((n_steps, values.shape[1]))
    middle[2:-2] = sum(weight * values[k : k + n_steps - 4] for k, weight in enumerate(STENCIL))
    for number in (0, 1):
        middle[number] = EDGE[number] @ values[:6]
        middle[-1 - number] = EDGE[number] @ values[:-7:-1]
    return middle


def halves(values: Trajectory) -> Halves:
    """Nodes and middles in turn."""
    both = np.empty((2 * len(values) - 1, values.shape[1]))
    both[::2], both[1::2] = values, middles(values)
    return both


def remaining(values: Float[np.ndarray, " halves"], step: float) -> Float[np.ndarray, " nodes"]:
    """∫ from each node to the last one, by Simpson's rule."""
    pieces = step / 6 * (values[:-2:2] + 4 * values[1::2] + values[2::2])
    return np.append(np.cumsum(pieces[::-1])[::-1], 0.0)


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
