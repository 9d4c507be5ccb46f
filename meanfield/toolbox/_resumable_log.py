"""A file of JSON lines that keeps the answers of a long game, so that it can resume after an interruption."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

from meanfield.toolbox._errors import InputError, StorageError, reason
from meanfield.toolbox._files import path_of

Line = dict[str, Any]


class ResumableLog:
    """JSON lines: first the key that determines a game, then the answers of its players.

    A game resumes by being replayed from the start with the answers in the file, so nothing is stored that follows from
    them. A line that was cut off when the process died is dropped. Several threads may share the log, but only one
    process: if another process changed the file, adding a line raises, and the other's lines stay whole.

    A `path` of None keeps nothing. The first name in `key` holds the kind and number of the format; `what` is the kind
    of game, for messages. `lines` are those that the file held after the first. InputError if the file holds another
    game or a line that is not a JSON object, or something else has written to it since. StorageError if it can't be
    read and written; no part of a new line is then in it.
    """

    def __init__(self, path: str | os.PathLike[str] | None, key: Line, what: str) -> None:
        self.path = None if path is None else path_of(path, "log")
        self.lines: list[Line] = []
        self._key, self._what = key, what
        self._lock = threading.Lock()
        self._length = 0  # of the file, as this object left it
        if self.path is None:
            return
        try:
            self._open(self.path)
        except OSError as error:
            raise StorageError(f"log = {self.path}: can't be read and written ({error.strerror})") from None

    def append(self, line: Line) -> None:
        """Add a line that outlives the process."""
        if self.path is not None:
            with self._lock:
                self._write(self.path, line)

    @contextmanager
    def answers(self, number: int) -> Iterator[Line]:
        """Line `number` of `lines`; InputError if it does not answer the present question."""
        try:
            yield self.lines[number]
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise self._wrong(f"line {number + 2} does not fit this {self._what} ({reason(error)})") from error

    def _open(self, path: Path) -> None:
        written = path.read_bytes() if path.exists() else b""
        whole = written[: written.rfind(b"\n") + 1]  # a line without an end was being written
        if not whole and not _encode(self._key).startswith(written):
            raise self._wrong(f"it is no log of a {self._what}")
        if whole:
            self._read(path, whole)
        self._length = len(written)
        with self._unchanged(path) as file:
            file.truncate(len(whole))
        self._length = len(whole)
        if not whole:
            self._write(path, self._key)

    def _read(self, path: Path, whole: bytes) -> None:
        found, *self.lines = (self._line(number, text) for number, text in enumerate(whole.splitlines(), 1))
        for name, expected in self._key.items():
            if name not in found:
                raise self._wrong(f"it is no log of a {self._what}")
            if found[name] != expected:
                held = f"it holds a {self._what} with {name} = {found[name]}"
                raise InputError(f"log = {path}: {held}, expected {expected}")

    def _line(self, number: int, text: bytes) -> Line:
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            line = None
        if not isinstance(line, dict):
            raise self._wrong(f"line {number} is damaged, or it is no log of a {self._what}")
        return line

    def _write(self, path: Path, line: Line) -> None:
        text = _encode(line)
        try:
            with self._unchanged(path) as file:
                end = self._add(file, text)
                if end != self._length + len(text):  # another process came between the look and the write
                    file.truncate(end - len(text))
                    raise self._changed()
        except OSError as error:
            raise StorageError(f"log = {path}: can't be written ({error.strerror})") from None
        self._length = end

    def _add(self, file: FileIO, text: bytes) -> int:
        """Write all of it or nothing, and return the end."""
        done = 0
        try:
            while done < len(text):
                done += file.write(text[done:])
        except OSError:
            if done:  # the next line would go on with half of this one
                file.truncate(file.tell() - done)
            raise
        except BaseException:  # which may come before `done` is told of what was written
            file.truncate(self._length)
            raise
        return file.tell()

    @contextmanager
    def _unchanged(self, path: Path) -> Iterator[FileIO]:
        """The file, unbuffered, to append to; InputError if it has changed."""
        with path.open("ab", buffering=0) as file:
            if file.tell() != self._length:
                raise self._changed()
            yield file

    def _changed(self) -> InputError:
        return InputError(f"log = {self.path}: another process wrote to it or removed it; resume in one process alone")

    def _wrong(self, problem: str) -> InputError:
        return InputError(f"log = {self.path}: {problem}; take a new file")


def _encode(line: Line) -> bytes:
    return (json.dumps(line) + "\n").encode()
