"""The arrays of a population: choice probabilities and shares of its kinds of agents, and committed shares."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from meanfield._population.reaction_tensor import Array


class Mixture(NamedTuple):
    """The arrays of a population.

    Attributes
    ----------
    q
        Choice probabilities of each kind, shape (M, S, W).
    share
        Share of each kind among all agents, shape (M,).
    committed
        Share of agents who always say a word, shape (W,).
    """

    q: Float[Array, "kinds states words"]
    share: Float[Array, " kinds"]
    committed: Float[Array, " words"]

    @classmethod
    def alone(cls, q: Float[Array, "states words"]) -> Mixture:
        """Agents of one policy only."""
        return cls(q[None], np.ones(1), np.zeros(q.shape[-1]))
