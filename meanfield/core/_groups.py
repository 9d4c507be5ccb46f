"""Agents who meet in groups and hear the majority of the others, a vote, or one member who speaks to all."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, Shaped

Array = jax.Array | np.ndarray

HEARS = ("majority", "vote", "speaker")
ROUNDING = 1e-9  # of shares that sum to 1


class Hearing(NamedTuple):
    """Outcomes of a meeting: how many agents say each word, and what the agents who say it hear.

    If each agent says word a with probability Q_a, outcome r has the probability weight[r] Π_a Q_a^said[r, a]. A member
    who says a hears b with probability heard[r, a, b], independently of the others.

    Examples
    --------
    A vote among three agents, who all hear the word that at least two of them say:

    >>> from meanfield import core
    >>> outcomes = core.Hearing.of(3, 2, "vote")
    >>> print(outcomes.weight, outcomes.said.tolist(), outcomes.heard[:, 0, 0])
    [1. 3. 3. 1.] [[3, 0], [2, 1], [1, 2], [0, 3]] [1. 1. 0. 0.]
    """

    weight: Float[Array, "*several outcomes"]
    said: Int[Array, "*several outcomes words"]
    heard: Float[Array, "*several outcomes words words"]

    @classmethod
    def of(cls, group: int | Mapping[int, float], n_words: int, hears: str) -> Hearing:
        """The outcomes among `group` agents, who hear by one of these rules.

        `group` may also be the shares of meetings by size, which sum to 1.

        'majority': each hears the most frequent word of the others. 'vote': all hear the most frequent word of the
        group. 'speaker': all hear the word of a random member. Of equally frequent words a random one is heard.
        """
        if isinstance(group, Mapping):
            if abs((total := sum(group.values())) - 1) > ROUNDING:
                raise ValueError(f"group = {group}: expected shares of meetings that sum to 1, not to {total:g}")
            parts = [cls.of(size, n_words, hears) for size in group]
            each = [
                part._replace(weight=share * part.weight) for part, share in zip(parts, group.values(), strict=True)
            ]
            return cls(*map(np.concatenate, zip(*each, strict=True)))
        if group < 2 or hears not in HEARS:
            raise ValueError(f"group = {group}, hears = {hears!r}: expected at least 2, and one of {', '.join(HEARS)}")
        rows = []
        for members in combinations_with_replacement(range(n_words), group):
            said = np.bincount(members, minlength=n_words)
            ways = factorial(group) / prod(map(factorial, said.tolist()))
            if hears == "majority":
                others = np.maximum(said - np.eye(n_words, dtype=int), 0)  # a row for each word that a member says
                rows.append((ways, said, np.array([_mode(one) for one in others])))
                continue
            chances = _mode(said) if hears == "vote" else said / group
            for word in np.flatnonzero(chances):  # all hear the same one
                heard = np.zeros((n_words, n_words))
                heard[:, word] = 1
                rows.append((ways * chances[word], said, heard))
        return cls(*(np.array(column) for column in zip(*rows, strict=True)))

    def heard_from(self, Q: Shaped[Array, "*batch words"]) -> Shaped[Array, "*batch words words"]:
        """P(b | a), the probability that a member who says a hears b, where the others say words with probabilities Q.

        Each probability has full relative accuracy, and rows sum to 1. Q may hold numbers of any type.
        """
        ways = self.weight[..., None] * self.said * _said_by(Q[..., None, None, :], self._others())
        heard = (jnp if isinstance(ways, jax.Array) else np).einsum("...ra,...rab->...ab", ways, self.heard)
        return heard / heard.sum(-1, keepdims=True)

    def heard_slope(self, Q: Shaped[np.ndarray, "*batch words"]) -> Shaped[np.ndarray, "*batch words words words"]:
        """∂P(b | a) / ∂Q_c for changes of Q that sum to 0, with axes a, b and c."""
        others = self._others()
        voices = others * _said_by(Q[..., None, None, None, :], others[..., None, :] - np.eye(Q.shape[-1], dtype=int))
        ways = self.weight[..., None] * self.said
        slope = np.einsum("...rac,...rab->...abc", ways[..., None] * voices, self.heard)
        size = (ways * _said_by(Q[..., None, None, :], others)).sum(-2)  # the mean size of a group, for each a
        return slope / size[..., None, None]

    def _others(self) -> Int[Array, "*several outcomes words words"]:
        """The number of others who say each word, by outcome and the word that a member says."""
        return self.said[..., :, None, :] - np.eye(self.said.shape[-1], dtype=int)


def _said_by(Q: Shaped[Array, "*batch words"], many: Int[Array, "*outcomes words"]) -> Shaped[Array, ...]:
    """The probability of one order in which `many` agents say each word; a negative number counts as none."""
    return (Q ** (many * (many > 0))).prod(-1)


def _mode(said: Int[np.ndarray, " words"]) -> Float[np.ndarray, " words"]:
    """The probability of each word to be the most frequent one, of equals one at random."""
    most = said == said.max()
    return most / most.sum()
