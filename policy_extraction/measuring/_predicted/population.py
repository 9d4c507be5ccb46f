"""Naming games of agents whose policy is a function of memories, many runs at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from policy_extraction.measuring._memories import NONE, states_of

Function = Callable[[np.ndarray], np.ndarray]  # choice probabilities (n, W) in memories (n, H)


class Game(NamedTuple):
    """N agents with empty memories and memories of H interactions, who play rounds of N interactions."""

    n_agents: int
    rounds: int
    memory_length: int
    n_words: int


class Visited(NamedTuple):
    """Memories (n, H) from which agents spoke, and how often (n,)."""

    codes: np.ndarray
    times: np.ndarray


def word_shares(function: Function, game: Game, runs: int, random: np.random.Generator) -> np.ndarray:
    """The probability that a random agent says each word at the end, shape (runs, W)."""
    played = _Play(function, game, runs, random)
    played.to_end()
    return played.q.mean(1)


def visited(function: Function, game: Game, runs: int, random: np.random.Generator) -> Visited:
    """Memories from which agents speak in `runs` games."""
    played = _Play(function, game, runs, random)
    spoken = np.concatenate(played.to_end(record=True))
    _, first, times = np.unique(states_of(spoken, game.n_words), return_index=True, return_counts=True)
    return Visited(spoken[first], times)


class _Play:
    def __init__(self, function: Function, game: Game, runs: int, random: np.random.Generator) -> None:
        self.function, self.game, self.random = function, game, random
        self.codes = np.full((runs, game.n_agents, game.memory_length), NONE)
        self._rows: dict[int, int] = {}  # of `_known`, by state: most memories occur many times
        self._known = np.empty((0, game.n_words))
        self.q = np.tile(self._probabilities(self.codes[0, :1]), (runs, game.n_agents, 1))

    def to_end(self, record: bool = False) -> list[np.ndarray]:
        """Play all rounds; returns the memories of all speakers, if they are recorded."""
        spoken, runs = [], np.arange(len(self.q))
        for _ in range(self.game.n_agents * self.game.rounds):
            one = self.random.integers(self.game.n_agents, size=len(runs))
            other = (one + self.random.integers(1, self.game.n_agents, size=len(runs))) % self.game.n_agents
            pair = np.stack([one, other], axis=1)
            before = self.codes[runs[:, None], pair]
            if record:
                spoken.append(before.reshape(-1, self.game.memory_length))
            said = self._said(self.q[runs[:, None], pair])
            after = np.concatenate([(said * self.game.n_words + said[:, ::-1])[..., None], before[..., :-1]], axis=-1)
            self.codes[runs[:, None], pair] = after
            q = self._probabilities(after.reshape(-1, self.game.memory_length))
            self.q[runs[:, None], pair] = q.reshape(*after.shape[:2], -1)
        return spoken

    def _probabilities(self, codes: np.ndarray) -> np.ndarray:
        """Choice probabilities (n, W) in memories (n, H); the function is asked about each memory once."""
        states = states_of(codes, self.game.n_words)
        unique, first, back = np.unique(states, return_index=True, return_inverse=True)
        new = np.array([state not in self._rows for state in unique.tolist()])
        if new.any():
            self._rows |= {state: len(self._known) + k for k, state in enumerate(unique[new].tolist())}
            self._known = np.concatenate([self._known, self.function(codes[first[new]])])
        rows = np.array([self._rows[state] for state in unique.tolist()])
        return self._known[rows[back.reshape(-1)]]

    def _said(self, q: np.ndarray) -> np.ndarray:
        """Words (runs, 2) drawn from probabilities (runs, 2, W)."""
        limits = q.cumsum(-1)
        number = self.random.random(limits.shape[:-1]) * limits[..., -1]
        return np.minimum((number[..., None] >= limits).sum(-1), q.shape[-1] - 1)
