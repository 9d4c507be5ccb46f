"""Levels of back-off: groups of memories that share their latest interactions, with or without the names of words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from validation.populations._memory_relations import Relations

NO_MEMBER = -1


class Level(NamedTuple):
    """Groups of memories with the same last `length` interactions; with no `length`, of equal memories not yet full.

    Unless words are `named`, memories are in one group if renaming words makes them the same. The choice is then not
    between words but between the roles of words: the k-th latest in memory, or none of these.
    """

    named: bool
    length: int | None

    def keys(self, relations: Relations) -> np.ndarray:
        """A number for the group of each memory, NO_MEMBER where it is in none."""
        places = relations.words.shape[1]
        words = relations.words if self.named else _roles(relations)
        base = relations.place.shape[1] if self.named else min(relations.place.shape[1], places)
        known = np.arange(places) < 2 * relations.held[:, None]
        if self.length is None:
            members, used = 2 * relations.held < places, known
        else:
            members, used = relations.held >= self.length, known & (np.arange(places) < 2 * self.length)
        key = np.where(used, words, 0) @ np.array([base**p for p in range(places)], dtype=np.int64)
        if self.length is None:
            shorter = np.array([sum(base ** (2 * h) for h in range(held)) for held in range(places // 2)] + [0])
            key = key + shorter[np.where(members, relations.held, places // 2)]
        return np.where(members, key, NO_MEMBER)

    def outcomes(self, relations: Relations) -> np.ndarray:
        """The outcome that choosing each word is, (memory, word)."""
        n, n_words = relations.place.shape
        if self.named:
            return np.broadcast_to(np.arange(n_words), (n, n_words))
        places = relations.words.shape[1] if self.length is None else 2 * self.length
        none = self.n_outcomes(n_words, relations.words.shape[1] // 2) - 1
        return np.where(relations.place < places, relations.rank, none)

    def n_outcomes(self, n_words: int, memory_length: int) -> int:
        """Words, or roles with one more for words that have none."""
        length = memory_length if self.length is None else self.length
        return n_words if self.named else min(n_words, 2 * length) + 1


class Groups(NamedTuple):
    """The groups of a level that were seen; the last row of each array is for memories in none."""

    keys: np.ndarray  # (group,), rising
    counts: np.ndarray  # (group, outcome), independent choices
    concentration: float

    def of(self, keys: np.ndarray) -> np.ndarray:
        """The group of each memory with these keys; len(self.keys) where it was not seen."""
        if not len(self.keys):
            return np.zeros(len(keys), dtype=np.int64)
        near = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        return np.where(self.keys[near] == keys, near, len(self.keys))


def levels(memory_length: int, names: bool) -> list[Level]:
    """From the most general to the most special; without `names` those that know none."""
    lengths = [*range(1, memory_length + 1), None]
    return [Level(named, length) for named in ((False, True) if names else (False,)) for length in lengths]


def totals(group: np.ndarray, outcomes: np.ndarray, values: np.ndarray, n_groups: int, n_outcomes: int) -> np.ndarray:
    """Sums of `values` (memory, word) by group and outcome; those of memories in none are left out."""
    inside = group < n_groups
    number = group[inside, None] * n_outcomes + outcomes[inside]
    summed = np.bincount(number.ravel(), values[inside].ravel(), minlength=n_groups * n_outcomes)
    return summed.reshape(n_groups, n_outcomes)


def _roles(relations: Relations) -> np.ndarray:
    """The role of the word in each place, (memory, 2H)."""
    return np.take_along_axis(relations.rank, np.maximum(relations.words, 0), axis=1)
