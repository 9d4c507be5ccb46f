"""Relations of words to a memory, which stay when words are renamed, and groups of memories that share some."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from validation.populations._choices import NOTHING

NO_MEMBER = -1
SITUATIONS = 3  # in which a word has a bias of its own: at first, where it is unseen, and ever


class Relations(NamedTuple):
    """Relations of words to memories of H places, from the latest: heard, said, heard before, …"""

    words: np.ndarray  # (memory, 2H), the word in each place, NOTHING beyond the first interactions
    place: np.ndarray  # (memory, word), the latest place of the word, 2H where it is unseen
    rank: np.ndarray  # (memory, word), how many words have a later place
    held: np.ndarray  # (memory,), interactions

    @classmethod
    def of(cls, memory: np.ndarray, n_words: int) -> Relations:
        """From memories (memory, H, 2), own and partner's words, oldest first, NOTHING before the first ones."""
        n, length, _ = memory.shape
        words = memory[:, ::-1, ::-1].reshape(n, 2 * length).astype(np.int64)
        place = np.full((n, n_words), 2 * length)
        for p in reversed(range(2 * length)):
            rows = np.flatnonzero(words[:, p] != NOTHING)
            place[rows, words[rows, p]] = p
        rank = place.argsort(1, kind="stable").argsort(1, kind="stable")
        return cls(words, place, rank, (words[:, ::2] != NOTHING).sum(1))

    def design(self, names: bool) -> csr_array:
        """Features (memory · word, feature) of a logit model of choice, in the order of `feature_groups`."""
        n, n_words = self.place.shape
        length = self.words.shape[1] // 2
        placed = [self.words[:, p, None] == np.arange(n_words) for p in range(2 * length)]
        heard, said = placed[::2], placed[1::2]
        times, ever_heard, ever_said = np.sum(placed, axis=0), np.any(heard, axis=0), np.any(said, axis=0)
        unseen = times == 0
        features = [*placed, *(one & other for one, other in zip(heard, said, strict=True))]
        features += [unseen & (self.held == held)[:, None] for held in range(1, length + 1)]
        features += [(times == times.max(1, keepdims=True)) & ~unseen, ever_heard & ~ever_said, ever_said & ~ever_heard]
        rows = [np.flatnonzero(one) for one in features]
        columns = [np.full(len(row), k) for k, row in enumerate(rows)]
        first = np.broadcast_to((self.held == 0)[:, None], unseen.shape)
        for k, acts in enumerate((first, unseen & ~first, np.ones_like(first)) if names else ()):
            rows.append(np.flatnonzero(acts))
            columns.append(len(features) + k * n_words + rows[-1] % n_words)
        row, column = np.concatenate(rows), np.concatenate(columns)
        shape = n * n_words, len(feature_groups(length, n_words, names))
        return coo_array((np.ones(len(row)), (row, column)), shape=shape).tocsr()


def feature_groups(memory_length: int, n_words: int, names: bool) -> np.ndarray:
    """The group of each feature: heard, said, agreed (by age), unseen (by length of the memory), frequency; biases."""
    of_words = 5 + np.repeat(np.arange(SITUATIONS if names else 0), n_words)
    return np.concatenate([np.tile([0, 1], memory_length), np.repeat([2, 3], memory_length), [4, 4, 4], of_words])


class Level(NamedTuple):
    """Groups of memories with the same last `length` interactions; with no `length`, of equal memories not yet full.

    Unless words are `named`, memories are in one group if renaming words makes them the same. The choice is then not
    between words but between the roles of words: the k-th latest in memory, or none of these.
    """

    named: bool
    length: int | None

    def keys(self, relations: Relations) -> np.ndarray:
        """A number for the group of each memory, NO_MEMBER where it is in none."""
        n_words, places, words = relations.place.shape[1], relations.words.shape[1], relations.words
        if not self.named:  # the role of the word in each place
            words = np.take_along_axis(relations.rank, np.maximum(words, 0), axis=1)
        base = n_words if self.named else min(n_words, places)
        used = np.arange(places) < 2 * relations.held[:, None]
        if self.length is None:
            members = 2 * relations.held < places
        else:
            members, used = relations.held >= self.length, used & (np.arange(places) < 2 * self.length)
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


def levels(memory_length: int, names: bool) -> list[Level]:
    """From the most general to the most special; without `names` those that know none."""
    lengths = [*range(1, memory_length + 1), None]
    return [Level(named, length) for named in ((False, True) if names else (False,)) for length in lengths]
