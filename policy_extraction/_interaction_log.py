"""A file to which a long run writes each interaction, and from which it goes on after an interruption."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from meanfield import InputError

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
    """JSON lines: first what determines the game, then one line an interaction of all runs.

    Parameters
    ----------
    path
        The file; None to keep nothing.
    key
        What determines the game.

    Attributes
    ----------
    steps
        The interactions that the file held.

    Raises
    ------
    InputError
        If the file can't be read and written, or holds another game or something else.
    """

    def __init__(self, path: str | os.PathLike[str] | None, key: dict[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.steps: list[Played] = []
        if self.path is not None:
            try:
                self._open(self.path, {"interactions": FORMAT, **key})
            except OSError as error:
                raise InputError(f"log = {self.path}: can't be read and written ({error.strerror})") from None

    def _open(self, path: Path, key: dict[str, Any]) -> None:
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]  # a line without an end was being written
        if not whole:
            path.write_text(json.dumps(key, ensure_ascii=False) + "\n", encoding="utf-8")
            return
        try:
            found, *lines = map(json.loads, whole.decode().splitlines())
            self.steps = [_played(line) for line in lines]
            differ = [name for name in key if found[name] != key[name]]
        except (ValueError, KeyError, TypeError):
            raise InputError(f"log = {path}: it is damaged, or no log of a population; take a new file") from None
        if differ:
            name = differ[0]
            raise InputError(f"log = {path}: it holds a game with {name} = {found[name]}, expected {key[name]}")
        with path.open("r+b") as file:
            file.truncate(len(whole))

    def append(self, t: int, step: Played) -> None:
        """Add interaction number t, so that it outlives the process."""
        if self.path is None:
            return
        line = {"interaction": t, "met": step.met.tolist(), "said": step.said.tolist()}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**line, "generated": step.generated, "valid": step.valid}) + "\n")


def _played(line: dict[str, Any]) -> Played:
    return Played(np.array(line["met"]), np.array(line["said"]), line["generated"], line["valid"])
