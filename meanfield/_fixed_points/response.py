"""The response: the word share of agents whose partners say words with fixed probabilities."""

from __future__ import annotations

import itertools

import numpy as np
from jaxtyping import Float

from meanfield._fixed_points.closed_classes import closed_classes
from meanfield._fixed_points.stationary_distribution import TOLERANCE, StationaryDistribution
from meanfield._population.mixture import Groups, Mixture
from meanfield.toolbox._errors import InputError

MAX_LOGIT = 600.0  # a share of 1e-261: products of smaller ones lose their digits


class Response:
    """F(Q) = Σ_m s_m f_m(Q) + c, with f_m(Q) the stationary word share of agents of kind m.

    `laws` are the stationary distributions of the kinds, each on one closed class of memories.
    """

    def __init__(self, mixture: Mixture | Groups, laws: tuple[StationaryDistribution, ...]) -> None:
        self._laws = laws
        self._mixture = mixture

    @property
    def reach(self) -> float:
        """|logit Q| up to which a search makes sense.

        Agents who say some words never may leave a set of memories only if they hear H rare words, whose product
        underflows if these are rarer; H rare answers in a row have had their effect before.
        """
        q, H = self._mixture.q, self._mixture.space.memory_length
        if (q > 0).all():
            return MAX_LOGIT
        return float(np.clip(-H * np.log(q[q > 0].min()), MAX_LOGIT / (H + 1), MAX_LOGIT))

    def of_kinds(
        self, Q: Float[np.ndarray, "laws words"], tolerance: float = TOLERANCE
    ) -> Float[np.ndarray, "kinds laws words"]:
        """f_m(Q) for each kind m and each row of Q."""
        return np.stack([law.word_share(Q, tolerance) for law in self._laws])

    def __call__(
        self, Q: Float[np.ndarray, "laws words"], tolerance: float = TOLERANCE
    ) -> Float[np.ndarray, "laws words"]:
        """F(Q) for each row of Q, to this relative accuracy."""
        said = self.of_kinds(Q, tolerance)
        return np.einsum("m,mlw->lw", self._mixture.share, said) + self._mixture.committed

    def composition(self, Q: Float[np.ndarray, "*laws words"]) -> Float[np.ndarray, "*laws kinds states"]:
        """p_m(Q), the stationary distribution over all states of each kind."""
        return np.stack([law.composition(Q) for law in self._laws], axis=-2)


def responses(mixture: Mixture | Groups, support: tuple[int, ...] | None = None) -> list[Response]:
    """The responses of a population, one for each choice of a closed class for each kind.

    `support` are the words that partners say, by default all.
    """
    space = mixture.space
    words = tuple(range(space.n_words)) if support is None else support
    each_kind = []
    for q, share in zip(mixture.q, mixture.share, strict=True):
        classes = closed_classes(q, space, heard=mixture.hearable(words))
        if share == 0:
            classes = classes[:1]  # nobody is there: its classes make no fixed points
        each_kind.append([StationaryDistribution(q, space, flows, mixture.heard_from) for flows in classes])
    return [Response(mixture, laws) for laws in itertools.product(*each_kind)]


def supports(mixture: Mixture | Groups, most: int) -> list[tuple[int, ...]]:
    """The sets of words to which a population may keep, from large to small: faces that may hold fixed points.

    On such a face the words of its support are heard and, in some closed class of each kind, no others are said. Each
    set is a union of smallest sets that contain a given word, with all that follows from hearing them. All words are
    one of the sets wherever every word may be said. InputError if there are more than `most`.
    """
    committed = frozenset(np.flatnonzero(mixture.committed).tolist())
    smallest = {kept for word in range(mixture.space.n_words) for kept in _kept_to(mixture, committed | {word})}
    found, pending = set(smallest), list(smallest)
    while pending:
        one = pending.pop()
        new = {kept for other in smallest if not other <= one for kept in _kept_to(mixture, one | other)} - found
        found |= new
        pending += new
        if len(found) > most:
            raise InputError(
                f"policy has more than {most} sets of words to which agents may keep: "
                "expected fewer, since each is searched for fixed points"
            )
    return sorted((tuple(sorted(kept)) for kept in found), key=lambda kept: (-len(kept), kept))


def _kept_to(mixture: Mixture | Groups, heard: frozenset[int]) -> set[frozenset[int]]:
    """The smallest sets of words that contain `heard` and all words said in reply."""
    kept, pending = set(), [heard]
    while pending:
        words = pending.pop()
        for said in _said(mixture, tuple(sorted(words))):
            if said <= words:
                kept.add(words)
            else:
                pending.append(words | said)
    return kept


def _said(mixture: Mixture | Groups, heard: tuple[int, ...]) -> set[frozenset[int]]:
    """The words that agents who hear these may say for good, for each choice of closed classes."""
    hearable, n_words = mixture.hearable(heard), mixture.space.n_words
    each_kind = [
        {frozenset((flows % n_words).tolist()) for flows in closed_classes(q, mixture.space, heard=hearable)}
        for q, share in zip(mixture.q, mixture.share, strict=True)
        if share > 0
    ]
    return {frozenset().union(*choice) for choice in itertools.product(*each_kind)}
