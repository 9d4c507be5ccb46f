"""Memories of the players of interactions, rebuilt from the interactions before."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd


class Memories(NamedTuple):
    """Memory of each player of each interaction (interaction, 2), as a number, and what the numbers mean."""

    number: np.ndarray
    texts: np.ndarray  # "own,partner|own,partner|…", oldest first


def memories(
    players: np.ndarray,
    said: np.ndarray,
    rounds: np.ndarray,
    initial: np.ndarray,
    words: list[str],
    memory_length: int,
) -> Memories:
    """Memories before each interaction (interaction, 2), of interactions in order.

    `players` (interaction, 2) are numbers that differ between runs, `said` (interaction, 2) numbers of `words`,
    `rounds` (interaction,) numbers that grow with the interactions: of one round nothing is remembered in it. `initial`
    (interaction,) is the number of the word that fills the memories at the start, -1 for none.
    """
    n_pairs = len(words) ** 2 + 1  # and nothing
    agent = players.ravel()
    order = np.argsort(agent, kind="stable")
    agent, when = agent[order], np.repeat(rounds, 2)[order]
    pair = (1 + len(words) * said + said[:, ::-1]).ravel()[order]
    start = np.repeat(np.where(initial < 0, 0, 1 + (len(words) + 1) * initial), 2)[order]
    place = np.arange(len(agent))
    first = _group_starts(np.diff(agent, prepend=agent[:1] - 1) != 0)
    now = np.maximum(first, _group_starts(np.diff(when, prepend=when[:1] - 1) != 0))

    def remembered(lag: int, some: np.ndarray) -> np.ndarray:
        back = now[some] - lag
        return np.where(back >= first[some], pair[np.maximum(back, 0)], start[some])

    number = np.zeros(len(agent), dtype=np.int64)
    for lag in range(1, memory_length + 1):  # numbers stay below the number of memories, so that no product overflows
        number = pd.factorize(number * n_pairs + remembered(lag, place))[0]
    _, example = np.unique(number, return_index=True)
    held = np.stack([remembered(lag, example) for lag in range(memory_length, 0, -1)], axis=1)
    names = ["", *(f"{own},{partner}" for own in words for partner in words)]
    texts = np.array(["|".join(names[code] for code in row if code) for row in held.tolist()], dtype=object)
    found = np.empty_like(number)
    found[order] = number
    return Memories(found.reshape(-1, 2), texts)


def _group_starts(new: np.ndarray) -> np.ndarray:
    """The first place of the group of each place; `new` where a group begins."""
    return np.maximum.accumulate(np.where(new, np.arange(len(new)), 0))
