"""A file of JSON lines to which a long run writes what happens, and from which it goes on after an interruption."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, Generic, TypeVar

from meanfield.toolbox._errors import InputError, StorageError

Content = TypeVar("Content")
Line = dict[str, Any]


class ResumableLog(Generic[Content]):
    """JSON lines: first what determines the game, then one line for each thing that happened.

    A line that was being written when the process died is dropped. May be used by several threads, but by one process:
    whichever finds the file longer or shorter than it left it is refused, and what the other one wrote stays whole.

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
        If the file holds another game or something else, or, on adding a line, something else wrote to it since.
    StorageError
        If the file can't be read and written. Then a line that was to be added is not in it, nor a part of it.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, key: Line, what: str, read: Callable[[Sequence[Line]], Content]
    ) -> None:
        self.path = None if path is None else Path(path)
        self._key, self._what, self._read = key, what, read
        self._lock = threading.Lock()
        self._length = 0  # of the file, as this object left it
        if self.path is None:
            self.content = read([])
            return
        try:
            self.content = self._open(self.path)
        except OSError as error:
            raise StorageError(f"log = {self.path}: can't be read and written ({error.strerror})") from None

    def append(self, line: Line) -> None:
        """Add a line, so that it outlives the process."""
        if self.path is not None:
            with self._lock:
                self._write(self.path, line)

    def _open(self, path: Path) -> Content:
        written = path.read_bytes() if path.exists() else b""
        whole = written[: written.rfind(b"\n") + 1]  # a line without an end was being written
        if not whole and not _encode(self._key).startswith(written):
            raise self._damaged()
        content = self._parse(path, whole) if whole else self._read([])
        self._length = len(written)
        with self._unchanged(path) as file:
            file.truncate(len(whole))
        self._length = len(whole)
        if not whole:
            self._write(path, self._key)
        return content

    def _parse(self, path: Path, whole: bytes) -> Content:
        try:
            found, *lines = map(json.loads, whole.splitlines())
            differ = [name for name in self._key if found[name] != self._key[name]]
            if not differ:  # lines of another game may mean nothing in this one
                return self._read(lines)
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._damaged() from None
        name = differ[0]
        expected = self._key[name]
        raise InputError(f"log = {path}: it holds a {self._what} with {name} = {found[name]}, expected {expected}")

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
        """Write all of it or nothing; where it ends."""
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
        """The file, to be written at its end and without a buffer; InputError if it is not as it was left."""
        with path.open("ab", buffering=0) as file:
            if file.tell() != self._length:
                raise self._changed()
            yield file

    def _changed(self) -> InputError:
        return InputError(
            f"log = {self.path}: another process wrote to it, or it was removed; start again alone to go on with it"
        )

    def _damaged(self) -> InputError:
        return InputError(f"log = {self.path}: it is damaged, or no log of a {self._what}; take a new file")


def _encode(line: Line) -> bytes:
    return (json.dumps(line) + "\n").encode()
