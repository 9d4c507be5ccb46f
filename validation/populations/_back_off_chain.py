"""A back-off policy: a law, and by which factors each group of memories departs from a more general one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv

from theory.streams import splitmix
from validation.naming_game import LazyPolicy
from validation.populations._back_off_levels import NO_MEMBER, Groups, Level, totals
from validation.populations._choices import NOTHING
from validation.populations._law_of_choice import Law
from validation.populations._memory_relations import Relations

LEAST_SHAPE = 0.5  # of a factor on a probability, so that what is rare does not become impossible where it is unseen
LEAST_PROBABILITY = 1e-15
UNIFORM_BITS = 2.0**-53


class Place(NamedTuple):
    """Where the seen memories are in a level."""

    keys: np.ndarray
    group: np.ndarray  # (memory,)
    outcomes: np.ndarray  # (memory, word)
    n_outcomes: int

    @classmethod
    def of(cls, level: Level, relations: Relations, n_words: int, memory_length: int) -> Place:
        keys = level.keys(relations)
        found, group = np.unique(keys, return_inverse=True)
        if len(found) and found[0] == NO_MEMBER:
            found, group = found[1:], np.where(group == 0, len(found) - 1, group - 1)
        return cls(found, group, level.outcomes(relations), level.n_outcomes(n_words, memory_length))

    def totals(self, counts: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Choices in each group, and the mean of the probabilities `q` over them, (group, outcome)."""
        where = self.group, self.outcomes
        sizes = len(self.keys), self.n_outcomes
        expected = totals(*where, counts.sum(1, keepdims=True) * q, *sizes)
        return totals(*where, counts, *sizes), expected / expected.sum(1, keepdims=True)

    def tilted(self, q: np.ndarray, tilt: np.ndarray) -> np.ndarray:
        return tilted(q, tilt[self.group[:, None], self.outcomes])


class Chain(NamedTuple):
    """A policy: a law, and by which factors each group of each level departs from the one above."""

    law: Law
    levels: list[Level]
    groups: list[Groups]
    tilts: list[np.ndarray]  # (group + 1, outcome), the last row 1
    key: int | None  # of the random departures of memories that were never seen; None: the mean, without

    def probabilities(self, relations: Relations) -> np.ndarray:
        q = self.law.probabilities(relations)
        certain = np.ones(len(q))
        for level, groups, tilt in zip(self.levels, self.groups, self.tilts, strict=True):
            keys = level.keys(relations)
            group = groups.of(keys)
            q = tilted(q, tilt[group[:, None], level.outcomes(relations)])
            unknown = (group == len(groups.keys)) & (keys != NO_MEMBER)
            certain[unknown] *= groups.concentration / (groups.concentration + 1)
        return q if self.key is None else self._scattered(q, certain, relations)

    def _scattered(self, q: np.ndarray, certain: np.ndarray, relations: Relations) -> np.ndarray:
        """Memories in groups that were not seen have policies around the centre, the same whenever they occur."""
        rows = np.flatnonzero(certain < 1)
        if not rows.size:
            return q
        named = self.levels[-2], self.levels[-1]
        key = np.where(relations.held[rows] == named[0].length, *(one.keys(relations)[rows] for one in named))
        streams = splitmix(key.astype(np.uint64) + splitmix(np.array([self.key], dtype=np.uint64)))
        streams = splitmix(streams + relations.held[rows].astype(np.uint64))
        numbers = np.arange(q.shape[1], dtype=np.uint64)
        uniform = (splitmix(streams[:, None] + numbers) >> np.uint64(11)) * UNIFORM_BITS + UNIFORM_BITS / 2
        shape = np.maximum(certain[rows, None] / (1 - certain[rows, None]) * q[rows], LEAST_SHAPE)
        weights = q[rows] * gammaincinv(shape, uniform) / shape
        q = q.copy()
        q[rows] = weights / weights.sum(1, keepdims=True)
        return q

    def lazy(self, words: tuple[str, ...], memory_length: int, name: str) -> LazyPolicy:
        def function(memories: list[tuple[tuple[int, int], ...]]) -> np.ndarray:
            return self.probabilities(Relations.of(as_array(memories, memory_length), len(words)))

        return LazyPolicy(function, words, memory_length, name=name)


def tilt_of(groups: Groups, centre: np.ndarray, random: np.random.Generator | None) -> np.ndarray:
    """Factors on the centre (group, outcome), the mean or drawn, and a last row for no group."""
    shape = np.maximum(groups.concentration * centre, LEAST_SHAPE)
    seen = groups.counts + shape
    if random is not None:
        seen = random.standard_gamma(seen)
    tilt = seen / (groups.counts.sum(1, keepdims=True) * centre + shape)
    return np.concatenate([tilt, np.ones((1, tilt.shape[1]))])


def tilted(q: np.ndarray, factors: np.ndarray) -> np.ndarray:
    weights = np.maximum(q * factors, LEAST_PROBABILITY)
    return weights / weights.sum(1, keepdims=True)


def as_array(memories: list[tuple[tuple[int, int], ...]], memory_length: int) -> np.ndarray:
    missing = ((NOTHING, NOTHING),)
    return np.array([missing * (memory_length - len(memory)) + memory for memory in memories])
