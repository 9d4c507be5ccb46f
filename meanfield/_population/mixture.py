"""The arrays of a population: choice probabilities and shares of its kinds of agents, and committed shares."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from meanfield._population.reaction_tensor import Array


class Mixture(NamedTuple):
    """The arrays of a population."""

    q: Float[Array, "kinds states words"]  # choice probabilities of each kind
    share: Float[Array, " kinds"]  # share of each kind among all agents
    committed: Float[Array, " words"]  # share of agents who always say a word

    @classmethod
    def alone(cls, q: Float[Array, "states words"]) -> Mixture:
        """Agents of one policy only."""
        return cls(q[None], np.ones(1), np.zeros(q.shape[-1]))
