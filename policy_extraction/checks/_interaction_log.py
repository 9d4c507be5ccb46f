"""What happened in a population, interaction by interaction, in a file from which it goes on."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from meanfield.toolbox import ResumableLog

FORMAT = 1


class Played(NamedTuple):
    """One interaction in each run.

    Attributes
    ----------
    met
        Who met, shape (runs, 2).
    said
        The words they said, as numbers, shape (runs, 2).
    generated
        Answers generated in all runs.
    valid
        How many of these were a word.
    """

    met: np.ndarray
    said: np.ndarray
    generated: int
    valid: int


class InteractionLog:
    """A `ResumableLog` with one line an interaction of all runs; its parameters and errors are those of that.

    Attributes
    ----------
    steps
        The interactions that the file held.
    """

    def __init__(self, path: str | os.PathLike[str] | None, key: dict[str, Any]) -> None:
        self._log = ResumableLog(
            path, {"interactions": FORMAT, **key}, "population", lambda lines: [_played(line) for line in lines]
        )
        self.steps = self._log.content

    def append(self, t: int, step: Played) -> None:
        """Add interaction number t."""
        line = {"interaction": t, "met": step.met.tolist(), "said": step.said.tolist()}
        self._log.append({**line, "generated": step.generated, "valid": step.valid})


def _played(line: dict[str, Any]) -> Played:
    return Played(np.array(line["met"]), np.array(line["said"]), line["generated"], line["valid"])
