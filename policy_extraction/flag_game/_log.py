"""The log of a game: every question and answer, from which an interrupted game goes on."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from meanfield import InputError
from meanfield.toolbox import ResumableLog

FORMAT = 1


class Call(NamedTuple):
    """The kind of a question, the step of the game, the agent, and how often it was asked before."""

    role: str
    step: int
    agent: int
    attempt: int


class CallLog:
    """A `ResumableLog` with one line a call and the same parameters and errors.

    A game is a function of its answers, so it goes on by being played again with the answers in the file.
    """

    def __init__(self, path: str | os.PathLike[str] | None, key: dict[str, Any]) -> None:
        self._log = ResumableLog(path, {"flag_game": FORMAT, **key}, "flag game")
        self._known: dict[Call, tuple[str, str, str]] = {}  # system message, user message and answer
        for number in range(len(self._log.lines)):
            with self._log.answers(number) as line:
                call = Call(*(line[name] for name in Call._fields))
                self._known[call] = line["system"], line["user"], line["answer"]

    def recall(self, call: Call, system: str, user: str) -> str | None:
        """The answer to this call in the file, or None."""
        if call not in self._known:
            return None
        *asked, answer = self._known[call]
        if asked != [system, user]:
            raise InputError(
                f"log = {self._log.path}: {call.role} of agent {call.agent} at step {call.step} was asked something "
                "else; the file was changed, take a new one"
            )
        return answer

    def append(self, call: Call, system: str, user: str, answer: str) -> None:
        """Add a call."""
        self._log.append(call._asdict() | {"system": system, "user": user, "answer": answer})
