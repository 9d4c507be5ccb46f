"""The arrays of a population: choice probabilities and shares of its kinds of agents, and committed shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from meanfield.core._groups import Hearing
from meanfield.core._space import MemorySpace


class Mixture(NamedTuple):
    """The arrays of a population."""

    q: Float[np.ndarray, "kinds states words"]  # choice probabilities of each kind
    share: Float[np.ndarray, " kinds"]  # share of each kind among all agents
    committed: Float[np.ndarray, " words"]  # share of agents who always say a word

    @property
    def space(self) -> MemorySpace:
        """The memory space, the same for all kinds."""
        return MemorySpace.from_sizes(*self.q.shape[1:])

    def convincible_share(self, word_share: Float[np.ndarray, "*batch words"]) -> Float[np.ndarray, "*batch words"]:
        """The word share among agents who are not committed, from the word share of all."""
        return (word_share - self.committed) / (1 - self.committed.sum())

    @property
    def fractions(self) -> Float[np.ndarray, " kinds"]:
        """Fraction of each kind among the agents who are not committed."""
        return self.share / self.share.sum()

    def consensus(self, word: int) -> Float[np.ndarray, "kinds states"]:
        """All agents have said and heard only this word in their last H interactions."""
        x = np.zeros(self.q.shape[:2])
        x[:, self.space.consensus_state(word)] = 1.0
        return x

    @property
    def empty(self) -> Float[np.ndarray, "kinds states"]:
        """All agents have empty memories, in fractions of all."""
        x = np.zeros(self.q.shape[:2])
        x[:, 0] = self.share
        return x

    @property
    def pace(self) -> float:
        """Interactions of an agent per unit of time."""
        return 1.0

    @staticmethod
    def heard_from(Q: Shaped[np.ndarray, "*batch words"]) -> Shaped[np.ndarray, "*batch words words"]:
        """The probability that one who says a hears b, P(b | a), where the others say words with probabilities Q."""
        return np.broadcast_to(Q[..., None, :], (*Q.shape, Q.shape[-1]))

    @staticmethod
    def heard_slope(Q: Shaped[np.ndarray, "*batch words"]) -> Float[np.ndarray, "words words words"]:
        """∂P(b | a) / ∂Q_c for changes of Q that sum to 0."""
        return np.tile(np.eye(Q.shape[-1]), (Q.shape[-1], 1, 1))

    @property
    def voices(self) -> int:
        """The degree of P(b | a) as a polynomial in Q."""
        return 1

    def hearable(self, words: tuple[int, ...]) -> Bool[np.ndarray, "words words"]:
        """Whether one who says a may hear b where the others say all of `words` and no others."""
        return self.heard_from(np.isin(np.arange(self.q.shape[-1]), words) / len(words)) > 0

    @staticmethod
    def stacked(mixtures: Sequence[AllMix]) -> AllMix:
        """Populations of one shape, along a first axis."""
        return type(mixtures[0])(*(np.stack(arrays) for arrays in zip(*mixtures, strict=True)))

    @classmethod
    def alone(cls, q: Float[np.ndarray, "states words"]) -> Mixture:
        """Agents of one policy only."""
        return cls(q[None], np.ones(1), np.zeros(q.shape[-1]))


class Blocks(NamedTuple):
    """The arrays of a population whose kinds of agents meet at rates of their own."""

    q: Float[np.ndarray, "kinds states words"]  # choice probabilities of each kind
    share: Float[np.ndarray, " kinds"]  # share of each kind among all agents, without committed ones
    committed: Float[np.ndarray, "kinds words"]  # share of agents who always say a word, and meet like each kind
    meets: Float[np.ndarray, "kinds kinds"]  # rates at which two agents meet, 1 on average over all pairs


class Groups(NamedTuple):
    """The arrays of a population that meets in groups, as `core.WordGame` has them, and `core.Hearing`."""

    q: Float[np.ndarray, "*several kinds states words"]  # choice probabilities of each kind
    share: Float[np.ndarray, "*several kinds"]  # share of each kind among all agents
    committed: Float[np.ndarray, "*several words"]  # share of agents who always say a word
    weight: Float[np.ndarray, "*several outcomes"]
    said: Int[np.ndarray, "*several outcomes words"]
    heard: Float[np.ndarray, "*several outcomes words words"]

    space = Mixture.space
    convincible_share = Mixture.convincible_share
    fractions = Mixture.fractions
    consensus = Mixture.consensus
    empty = Mixture.empty
    hearable = Mixture.hearable

    @property
    def hearing(self) -> Hearing:
        """The outcomes of a meeting."""
        return Hearing(*self[3:])

    @property
    def pace(self) -> float:
        """Interactions of an agent per unit of time: half the mean size of a group."""
        alike = ~self.said[:, 1:].any(1)
        return float(self.weight[alike] @ self.said[alike, 0] / 2)

    def heard_from(self, Q: Shaped[np.ndarray, "*batch words"]) -> Shaped[np.ndarray, "*batch words words"]:
        """P(b | a), see `Mixture.heard_from`."""
        return np.asarray(self.hearing.heard_from(Q))

    def heard_slope(self, Q: Shaped[np.ndarray, "*batch words"]) -> Shaped[np.ndarray, "*batch words words words"]:
        """∂P(b | a) / ∂Q_c, see `Mixture.heard_slope`."""
        return self.hearing.heard_slope(Q)

    @property
    def voices(self) -> int:
        """The degree of P(b | a) as a polynomial in Q: the others in the largest group."""
        return int(self.said.sum(-1).max()) - 1


AllMix = TypeVar("AllMix", Mixture, Groups)  # everybody may meet everybody


class Edges(NamedTuple):
    """The arrays of a population on a graph where all have the same number of neighbours, or of several of them."""

    q: Float[np.ndarray, "*several one states words"]  # choice probabilities
    share: Float[np.ndarray, "*several one"]  # share of agents who are not committed
    committed: Float[np.ndarray, "*several words"]  # share of agents who always say a word
    degree: Float[np.ndarray, "*several"]  # number of neighbours

    def independent(
        self, x: Float[np.ndarray, "several starts one states"]
    ) -> Float[np.ndarray, "several starts states ends"]:
        """The states of `core.EdgeGame` in which neighbours know nothing of each other."""
        rows = self.share[:, None] * x[:, :, 0]
        committed = np.broadcast_to(self.committed[:, None], (*rows.shape[:2], self.committed.shape[-1]))
        return rows[..., None] * np.concatenate([rows, committed], axis=-1)[:, :, None]
