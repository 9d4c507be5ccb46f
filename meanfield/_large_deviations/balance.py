"""The stationary distribution of a chain whose rates differ by many orders of magnitude, from their logarithms."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from scipy.sparse.csgraph import connected_components

Rates = Float[np.ndarray, "places places *sizes"]
Law = Float[np.ndarray, "places *sizes"]


def closed_classes(possible: Bool[np.ndarray, "places places"]) -> list[np.ndarray]:
    """The smallest sets of places that are never left once entered."""
    n_classes, label = connected_components(possible, connection="strong")
    leaves = possible & (label[:, None] != label)
    members = [np.flatnonzero(label == one) for one in range(n_classes)]
    return [some for some in members if not leaves[some].any()]


def balanced(rates: Rates, add: np.ufunc = np.logaddexp) -> Law:
    """Logarithms of the stationary distribution of a chain in which every place is reached from every other.

    The state reduction of Grassmann, Taksar and Heyman (Oper. Res. 33, 1107 (1985)) adds, multiplies and divides, but
    never subtracts: no digits are lost. With `np.maximum` as the sum, rates exp(-NΔ) given as -Δ have distributions
    exp(N · result) to leading order.
    """
    rates = rates.copy()
    size = len(rates)
    for n in range(size - 1, 0, -1):
        rates[:n, n] -= add.reduce(rates[n, :n])
        rates[:n, :n] = add(rates[:n, :n], rates[:n, None, n] + rates[None, n, :n])
    law = np.zeros(rates.shape[1:])
    for n in range(1, size):
        law[n] = add.reduce(law[:n] + rates[:n, n])
    return law - add.reduce(law)
