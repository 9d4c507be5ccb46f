"""A file with every question and answer of a game, from which an interrupted one goes on."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any, NamedTuple

from meanfield import InputError

FORMAT = 1


class Call(NamedTuple):
    """Which question it is: its kind, the step of the game, who is asked, and how often it was asked before."""

    role: str
    step: int
    agent: int
    attempt: int


class CallLog:
    """JSON lines: first what determines the game, then one line a call.

    A game is a function of its answers, so that it goes on by being played again with those that the file holds.
    May be used by several threads.

    Parameters
    ----------
    path
        The file; None to keep nothing.
    key
        What determines the game.

    Raises
    ------
    InputError
        If the file can't be read and written, or holds another game or something else.
    """

    def __init__(self, path: str | os.PathLike[str] | None, key: dict[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self._known: dict[Call, dict[str, Any]] = {}
        self._lock = threading.Lock()
        if self.path is not None:
            try:
                self._open(self.path, {"flag_game": FORMAT, **key})
            except OSError as error:
                raise InputError(f"log = {self.path}: can't be read and written ({error.strerror})") from None

    def _open(self, path: Path, key: dict[str, Any]) -> None:
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]  # a line without an end was being written
        if not whole:
            path.write_text(json.dumps(key) + "\n", encoding="utf-8")
            return
        try:
            found, *lines = map(json.loads, whole.decode().splitlines())
            self._known = {Call(*(line[name] for name in Call._fields)): line for line in lines}
            differ = [name for name in key if found[name] != key[name]]
            complete = all({"system", "user", "answer"} <= set(line) for line in lines)
        except (ValueError, KeyError, TypeError):
            complete, differ = False, []
        if not complete:
            raise InputError(f"log = {path}: it is damaged, or no log of a flag game; take a new file")
        if differ:
            name = differ[0]
            raise InputError(f"log = {path}: it holds a game with {name} = {found[name]}, expected {key[name]}")
        with path.open("r+b") as file:
            file.truncate(len(whole))

    def recall(self, call: Call, system: str, user: str) -> str | None:
        """The answer that the file holds, if it holds this call."""
        line = self._known.get(call)
        if line is None:
            return None
        if (line["system"], line["user"]) != (system, user):
            raise InputError(
                f"log = {self.path}: {call.role} of agent {call.agent} at step {call.step} was asked something else; "
                "the file was changed, take a new one"
            )
        return line["answer"]

    def append(self, call: Call, system: str, user: str, answer: str) -> None:
        """Add a call, so that it outlives the process."""
        if self.path is None:
            return
        line = json.dumps(call._asdict() | {"system": system, "user": user, "answer": answer})
        with self._lock, self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
