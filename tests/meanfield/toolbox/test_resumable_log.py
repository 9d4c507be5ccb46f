"""A log outlives whatever happens to the process, the disk, or the file while it is written."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from meanfield import InputError, StorageError
from meanfield.toolbox._resumable_log import ResumableLog

KEY = {"game": 1, "seed": 5}


def open_log(path: Path, **key: object) -> ResumableLog:
    """A log whose lines are numbered."""
    log = ResumableLog(path, {**KEY, **key}, "sorting game")
    assert [line["number"] for line in log.lines] == list(range(len(log.lines)))
    return log


def length(path: Path) -> int:
    return len(open_log(path).lines)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


@contextmanager
def refused(path: Path, message: str) -> Iterator[None]:
    with pytest.raises((InputError, StorageError), match=message) as error:
        yield
    assert str(error.value).startswith(f"log = {path}: ") and "\n" not in str(error.value)


# Two that write


def test_of_two_that_write_one_is_refused_and_the_log_stays_whole(path: Path) -> None:
    open_log(path).append({"number": 0})
    loser, winner = open_log(path), open_log(path)
    for number in range(1, 5):
        winner.append({"number": number})
        with refused(path, "another process wrote to it or removed it"):
            loser.append({"number": number})
    assert length(path) == 5


class Between(io.FileIO):
    """A file to which another process writes at the worst moment: after the look at its length, before the write."""

    other: Callable[[], None]

    def write(self, data):
        type(self).other()
        return super().write(data)


def test_who_writes_between_the_look_and_the_write_loses_nothing(path: Path, monkeypatch) -> None:
    log, other = open_log(path), open_log(path)
    opened = Path.open

    def write_first() -> None:
        monkeypatch.setattr(Path, "open", opened)
        other.append({"number": 0})

    Between.other = write_first
    monkeypatch.setattr(Path, "open", lambda self, *_, **__: Between(self, "ab"))
    with refused(path, "another process wrote to it"):
        log.append({"number": 0})
    other.append({"number": 1})
    assert length(path) == 2


@pytest.mark.parametrize("change", ["removed", "emptied", "shorter", "longer"])
def test_a_file_that_was_changed_meanwhile_is_not_written_to(path: Path, change: str) -> None:
    log = open_log(path)
    log.append({"number": 0})
    content = path.read_bytes()
    if change == "removed":
        path.unlink()
    else:
        path.write_bytes({"emptied": b"", "shorter": content[:-4], "longer": content + b'{"number": 1}\n'}[change])
    left = path.read_bytes() if path.exists() else b""
    with refused(path, "another process wrote to it or removed it"):
        log.append({"number": 1})
    assert path.read_bytes() == left
    assert length(path) == {"removed": 0, "emptied": 0, "shorter": 0, "longer": 2}[change]


def test_opening_does_not_cut_off_what_another_process_is_adding(path: Path, monkeypatch) -> None:
    log, read = open_log(path), ResumableLog._read
    log.append({"number": 0})

    def slow(self, *content) -> None:
        log.append({"number": 1})  # while the other one reads
        read(self, *content)

    with refused(path, "another process wrote to it"), monkeypatch.context() as patch:
        patch.setattr(ResumableLog, "_read", slow)
        open_log(path)
    log.append({"number": 2})
    assert length(path) == 3


# Writes that fail


@pytest.mark.parametrize("room", [0, 7, 14])
def test_a_disk_that_is_full_gets_no_half_line(path: Path, room: int) -> None:
    """The limit of the system on the size of a file cuts a line in half, as a full disk does."""
    resource = pytest.importorskip("resource", reason="this system has no limit on the size of a file")
    log = open_log(path)
    log.append({"number": 0})
    content, line = path.read_bytes(), b'{"number": 1}\n'
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(content) + room, hard))
    try:
        with nullcontext() if room == len(line) else refused(path, r"can't be written \(File too large\)"):
            log.append({"number": 1})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == content + (line if room == len(line) else b"")
    more = length(path)
    log.append({"number": more})  # the same object, after some room was made
    assert length(path) == more + 1


def test_an_interrupt_in_the_middle_of_a_line_leaves_none_of_it(path: Path, monkeypatch) -> None:
    class Interrupted(io.FileIO):
        def write(self, data):
            super().write(data[:5])
            raise KeyboardInterrupt

    log = open_log(path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda self, *_, **__: Interrupted(self, "ab"))
        with pytest.raises(KeyboardInterrupt):
            log.append({"number": 0})
    log.append({"number": 0})
    assert length(path) == 1


def test_a_folder_that_is_gone_is_one_line(tmp_path: Path) -> None:
    with refused(tmp_path / "none" / "log", "can't be read and written"):
        open_log(tmp_path / "none" / "log")
    with refused(tmp_path, "can't be read and written"):
        open_log(tmp_path)


# What it holds


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (b'{"game": 1, "seed": 6}\n', "it holds a sorting game with seed = 6, expected 5"),
        (b'{"game": 1}\n', "it is no log of a sorting game; take a new file"),
        (b"[1, 2]\n", "line 1 is damaged, or it is no log of a sorting game; take a new file"),
        (b"a letter without an end", "it is no log of a sorting game; take a new file"),
    ],
)
def test_a_file_of_something_else_is_refused_and_left_as_it_is(path: Path, first: bytes, message: str) -> None:
    path.write_bytes(first)
    with refused(path, message):
        open_log(path)
    assert path.read_bytes() == first


@pytest.mark.parametrize("line", [b"[" * 100_000, b"\xff", b"5", b""])
def test_a_line_that_cannot_be_read_is_damage(path: Path, line: bytes) -> None:
    open_log(path).append({"number": 0})
    content = path.read_bytes()
    for rest in (b"", b'{"number": 1}\n'):
        path.write_bytes(content + line + b"\n" + rest)
        with refused(path, "line 3 is damaged, or it is no log of a sorting game; take a new file"):
            open_log(path)
        assert path.read_bytes() == content + line + b"\n" + rest
    path.write_bytes(content + line)  # it was being written
    assert length(path) == 1
    assert path.read_bytes() == content


def test_an_answer_to_another_question_is_named_by_its_line(path: Path) -> None:
    open_log(path).append({"number": 0})
    message = r"line 2 does not fit this sorting game \('said'\); take a new file"
    with refused(path, message), open_log(path).answers(0) as line:
        assert line == {"number": 0}
        raise KeyError("said")


@pytest.mark.parametrize("cut", [1, 9])
def test_half_a_first_line_is_begun_anew(path: Path, cut: int) -> None:
    open_log(path)
    begun = path.read_bytes()
    path.write_bytes(begun[: len(begun) - cut])
    log = open_log(path)
    assert (log.lines, path.read_bytes()) == ([], begun)
    log.append({"number": 0})
    assert length(path) == 1
