"""What agents say whose partners say words with fixed probabilities: the response whose fixed points are sought."""

from __future__ import annotations

import itertools

import numpy as np
from jaxtyping import Float

from meanfield._closed_classes import closed_classes
from meanfield._population import Population
from meanfield._stationary import TOLERANCE, StationaryLaw


class Response:
    """F(Q) = Σ_m s_m f_m(Q) + c, with f_m(Q) the stationary word share of agents of kind m.

    Parameters
    ----------
    population
        Its kinds of agents have each one or several closed classes of memories.
    laws
        The stationary law of each kind on the closed class that is meant.
    """

    def __init__(self, population: Population, laws: tuple[StationaryLaw, ...]) -> None:
        self._laws = laws
        self._mixture = population.mixture

    def of_kinds(
        self, Q: Float[np.ndarray, "laws words"], tolerance: float = TOLERANCE
    ) -> Float[np.ndarray, "kinds laws words"]:
        """f_m(Q) for each kind m and each row of Q."""
        return np.stack([law.word_share(Q, tolerance) for law in self._laws])

    def __call__(
        self, Q: Float[np.ndarray, "laws words"], tolerance: float = TOLERANCE
    ) -> Float[np.ndarray, "laws words"]:
        """F(Q) for each row of Q, to the relative accuracy that is asked for, by default that of float64."""
        said = self.of_kinds(Q, tolerance)
        return np.einsum("m,mlw->lw", self._mixture.share, said) + self._mixture.committed

    def composition(self, Q: Float[np.ndarray, " words"]) -> Float[np.ndarray, "kinds states"]:
        """p_m(Q), the stationary law over all states of each kind."""
        return np.stack([law.composition(Q) for law in self._laws])


def responses(population: Population, support: tuple[int, ...] | None = None) -> list[Response]:
    """The responses of a population, one for each way to choose a closed class for each kind.

    Parameters
    ----------
    population
        Any.
    support
        The words that partners say; default all.
    """
    words = tuple(range(population.space.n_words)) if support is None else support
    each_kind = []
    for q, share in zip(population.mixture.q, population.mixture.share, strict=True):
        classes = closed_classes(q, population.space, heard=words)
        if share == 0:
            classes = classes[:1]  # nobody is there: its classes make no fixed points
        each_kind.append([StationaryLaw(q, population.space, flows) for flows in classes])
    return [Response(population, laws) for laws in itertools.product(*each_kind)]
