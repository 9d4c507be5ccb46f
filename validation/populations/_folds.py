"""Which runs are predicted from which others."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
import pandas as pd

from meanfield import InputError
from meanfield.toolbox import whole_number
from validation.populations._conditions import CONDITION

BY = ("run", "experiment")


def check_by(by: str, folds: int) -> int:
    """The number of folds; InputError unless both can be used."""
    if by not in BY:
        raise InputError(f"by = {by!r}: expected one of {', '.join(BY)}")
    return whole_number("folds", folds, 2)


def folds_of(runs: pd.DataFrame, by: str, folds: int, seed: int, name: str) -> Iterator[tuple[str, np.ndarray]]:
    """Name of each fold, and whether each run is in it.

    Runs under each condition are dealt to the folds at random; or the runs of an experiment are a fold. A subject of
    this `name` has folds of its own, whatever the others are.
    """
    if by == "experiment":
        label = _experiments(runs)
    else:
        random = np.random.default_rng((seed, zlib.crc32(name.encode())))
        number = np.empty(len(runs), dtype=int)
        dealt = 0
        for _, rows in sorted(runs.groupby(CONDITION).indices.items()):
            number[random.permutation(rows)] = (dealt + np.arange(len(rows))) % folds
            dealt += len(rows)
        label = np.array([f"{one + 1} of {folds}" for one in number])
    for one in np.unique(label):
        yield str(one), label == one


def _experiments(runs: pd.DataFrame) -> np.ndarray:
    parts = [runs["experiment"].str.replace("_", " "), runs["initial_consensus"], runs["committed_word"]]
    labels = [
        f"{experiment}{f' {initial}' if initial else ''}{f' to {word}' if word else ''}, N = {n_agents}"
        for experiment, initial, word, n_agents in zip(*parts, runs["n_agents"], strict=True)
    ]
    return np.array(labels)
