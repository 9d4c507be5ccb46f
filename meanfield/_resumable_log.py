"""A file of JSON lines to which a long run writes what happens, and from which it goes on after an interruption."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from meanfield._errors import InputError

Content = TypeVar("Content")
Line = dict[str, Any]


class ResumableLog(Generic[Content]):
    """JSON lines: first what determines the game, then one line for each thing that happened.

    A line that was being written when the process died is dropped. May be used by several threads.

    Parameters
    ----------
    path
        The file; None to keep nothing.
    key
        What determines the game, with the kind and the number of the format under the first name.
    what
        Of what it is the log, for messages.
    read
        Makes of the lines after the first what they tell; ValueError, KeyError or TypeError where they are no such
        lines.

    Attributes
    ----------
    content
        What the file held.

    Raises
    ------
    InputError
        If the file can't be read and written, or holds another game or something else.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, key: Line, what: str, read: Callable[[Sequence[Line]], Content]
    ) -> None:
        self.path = None if path is None else Path(path)
        self._key, self._what, self._read = key, what, read
        self._lock = threading.Lock()
        if self.path is None:
            self.content = read([])
            return
        try:
            self.content = self._open(self.path)
        except OSError as error:
            raise InputError(f"log = {self.path}: can't be read and written ({error.strerror})") from None

    def append(self, line: Line) -> None:
        """Add a line, so that it outlives the process."""
        if self.path is None:
            return
        with self._lock, self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _open(self, path: Path) -> Content:
        written = path.read_bytes() if path.exists() else b""
        whole = written[: written.rfind(b"\n") + 1]  # a line without an end was being written
        if not whole:
            begun = (json.dumps(self._key) + "\n").encode()
            if not begun.startswith(written):
                raise self._damaged()
            path.write_bytes(begun)
            return self._read([])
        try:
            found, *lines = map(json.loads, whole.splitlines())
            content = self._read(lines)
            differ = [name for name in self._key if found[name] != self._key[name]]
        except (ValueError, KeyError, TypeError):
            raise self._damaged() from None
        if differ:
            name = differ[0]
            raise InputError(f"log = {path}: it holds a game with {name} = {found[name]}, expected {self._key[name]}")
        with path.open("r+b") as file:
            file.truncate(len(whole))
        return content

    def _damaged(self) -> InputError:
        return InputError(f"log = {self.path}: it is damaged, or no log of a {self._what}; take a new file")
