"""Relations of words to a memory: said or heard, when and how often. None changes if words are renamed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from validation.populations._choices import NOTHING

FIRST, UNSEEN, ANY = range(3)  # situations in which a word has a bias of its own


class Relations(NamedTuple):
    """Relations of `n_words` words to n memories of H places, from the latest: heard, said, heard before, …"""

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

    def part(self, some: slice) -> Relations:
        """Some of the memories."""
        return Relations(*(values[some] for values in self))

    def features(self) -> np.ndarray:
        """Features (memory, word, feature) of a law of choice, in the order of `feature_groups`."""
        n, n_words = self.place.shape
        length = self.words.shape[1] // 2
        found = np.zeros((n, n_words, len(feature_groups(length))))
        for p in range(2 * length):
            rows = np.flatnonzero(self.words[:, p] != NOTHING)
            found[rows, self.words[rows, p], p] = 1
        heard, said = found[:, :, : 2 * length : 2], found[:, :, 1 : 2 * length : 2]
        found[:, :, 2 * length : 3 * length] = heard * said
        unseen = self.place == 2 * length
        for held in range(1, length + 1):
            found[:, :, 3 * length + held - 1] = unseen & (self.held == held)[:, None]
        times = heard.sum(2) + said.sum(2)
        found[:, :, -3] = (times == times.max(1, keepdims=True)) & ~unseen
        found[:, :, -2] = ~unseen & ~said.any(2)
        found[:, :, -1] = ~unseen & ~heard.any(2)
        return found

    def situations(self) -> np.ndarray:
        """Which of the biases FIRST, UNSEEN and ANY act on the word, (situation, memory, word)."""
        first = np.broadcast_to((self.held == 0)[:, None], self.place.shape)
        unseen = (self.place == self.words.shape[1]) & ~first
        return np.stack([first, unseen, np.ones_like(first)]).astype(float)


def feature_groups(memory_length: int) -> np.ndarray:
    """The group of each feature: heard, said, agreed (by age), unseen (by length of the memory), frequency."""
    heard_or_said = np.tile([0, 1], memory_length)
    return np.concatenate([heard_or_said, np.repeat([2, 3], memory_length), [4, 4, 4]])
