"""A measurement that ends early goes on where it stopped, and keeps what was answered."""

from __future__ import annotations

import errno
import io
import os
import re
import sqlite3
import warnings
from contextlib import redirect_stderr
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield import InputError, MemorySpace, ModelError, StorageError
from policy_extraction import extract
from policy_extraction.backends import Scores, TableBackend
from policy_extraction.measuring import _answers, _cache
from policy_extraction.measuring._answers import Answers

HIS_HER = ("his", "her")
GAME = {"words": HIS_HER, "memory_length": 2}
N_PROMPTS = 2 * MemorySpace(2, 2).n_states
PORTION = 8


SMALL = {"words": HIS_HER, "memory_length": 1}


def uniform(memory, order):
    return {"his": 0.25, "her": 0.5}


def table() -> TableBackend:
    return TableBackend(uniform, **SMALL, identity="table")


class Breaks(TableBackend):
    """Answers some prompts and then fails, or is interrupted."""

    def __init__(self, answers: int, error: type[BaseException] = RuntimeError, identity: str = "breaks") -> None:
        super().__init__(uniform, HIS_HER, 2, identity=identity)
        self.left, self.error, self.asked = answers, error, 0

    def score(self, prompts, words):
        for portion in super().score(prompts, words):
            if not self.left:
                raise self.error
            self.left -= 1
            self.asked += 1
            yield portion


# --- measurements that end early -----------------------------------------------------------------------------------


def test_a_local_model_goes_on_from_an_interrupt_to_the_same_bytes(tmp_path, monkeypatch, capsys):
    """Answers that wait for the next write are kept, too."""
    pytest.importorskip("torch", reason="language models need the extra llm")
    pytest.importorskip("transformers", reason="language models need the extra llm")
    from _prompt_files import SHORT
    from _tiny_models import tiny
    from policy_extraction.backends.local import TransformersBackend, _transformers

    folder, records = str(tmp_path / "tiny"), tmp_path / "records"
    for part in tiny():
        part.save_pretrained(folder)
    capsys.readouterr()
    asked, score = [], TransformersBackend.score

    def counted(self, prompts, words):
        asked.append(len(prompts))
        for number, portion in enumerate(score(self, prompts, words)):
            if number == 2 and len(asked) == 1:
                raise KeyboardInterrupt
            yield portion

    monkeypatch.setattr(_transformers, "PORTION", PORTION)
    monkeypatch.setattr(TransformersBackend, "score", counted)
    monkeypatch.setattr(_answers, "PAUSE", np.inf)
    with pytest.raises(KeyboardInterrupt):
        extract(folder, **GAME, template=SHORT, cache=records)
    (kept,) = records.iterdir()
    line = f"tiny: interrupted; {2 * PORTION} answers are kept in {kept}, from which the same call goes on\n"
    assert capsys.readouterr().err.endswith(line) and len(Answers(kept)) == 2 * PORTION
    continued = extract(folder, **GAME, template=SHORT, cache=records)
    whole = extract(folder, **GAME, template=SHORT, cache=tmp_path / "whole")
    assert asked == [N_PROMPTS, N_PROMPTS - 2 * PORTION, N_PROMPTS]
    assert continued.identical(whole)
    (one,), (other,) = records.iterdir(), (tmp_path / "whole").iterdir()
    assert one.name == other.name and one.read_bytes() == other.read_bytes()


def test_the_next_run_clears_what_a_killed_save_left(tmp_path, monkeypatch):
    """The answers, and a file that was half written."""
    with monkeypatch.context() as patch:
        patch.setattr(_cache.RecordCache, "_clear", lambda *_: None)
        extract(table(), **SMALL, cache=tmp_path)
    (record,) = tmp_path.glob("*.nc")
    half = tmp_path / f".{record.name}.x"  # as by `meanfield.save`
    half.mkdir()
    (half / record.name).write_bytes(b"half")
    assert len(list(tmp_path.iterdir())) == 3
    policy = extract(table(), **SMALL, cache=tmp_path)
    assert list(tmp_path.iterdir()) == [record] and policy.identical(extract(table(), **SMALL, cache=False))


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), RuntimeError("HDF5: can't write")])
def test_a_full_disk_at_the_last_save_loses_nothing(error, tmp_path, monkeypatch):
    """Raised in place of the system, since not every one lets a test mount a disk that is full."""
    asked, score = [], TableBackend.score

    def counted(self, prompts, words):
        asked.extend(prompts)
        return score(self, prompts, words)

    def full(*_):
        raise error

    monkeypatch.setattr(TableBackend, "score", counted)
    monkeypatch.setattr(_cache, "save", full)
    with pytest.raises(StorageError, match=f"cache = {re.escape(str(tmp_path))}.*are kept, start again") as told:
        extract(table(), **SMALL, cache=tmp_path)
    assert "\n" not in str(told.value) and len(asked) == 10
    monkeypatch.setattr(_cache, "save", meanfield.save)
    extract(table(), **SMALL, cache=tmp_path)
    assert len(asked) == 10, "nothing is asked again"


# --- measurements that fail ----------------------------------------------------------------------------------------


class Screen(io.StringIO):
    """A stderr, of a terminal or not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.isatty = lambda: terminal


@pytest.mark.parametrize(("terminal", "progress", "shown"), [(1, None, 1), (0, None, 0), (1, False, 0), (0, True, 1)])
def test_a_terminal_shows_progress_unless_told_otherwise(terminal, progress, shown):
    with redirect_stderr(Screen(bool(terminal))) as screen:
        extract(table(), **SMALL, cache=False, progress=None if progress is None else bool(progress))
    assert ("10/10" in screen.getvalue()) == bool(shown)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_what_was_handed_over_is_never_asked_again(tmp_path, error, capsys):
    options = {"words": HIS_HER, "memory_length": 2, "cache": tmp_path}
    first = Breaks(10, error)
    with pytest.raises(error):
        extract(first, **options)
    second = Breaks(1000)
    policy = extract(second, progress=True, **options)
    assert (first.asked, second.asked) == (10, 42 - 10)
    assert "42/42" in capsys.readouterr().err, "progress counts what is known"
    assert (policy["q"].values == extract(Breaks(1000), **{**options, "cache": False})["q"].values).all()
    extract(Breaks(0), **options)  # finished: nothing is asked any more


def test_without_a_cache_an_interrupt_says_so(capsys):
    with pytest.raises(KeyboardInterrupt):
        extract(Breaks(10, KeyboardInterrupt, ""), words=HIS_HER, memory_length=2)
    assert capsys.readouterr().err == "table: interrupted; no answer is kept on disk\n"


def test_what_another_process_finished_meanwhile_is_not_asked(tmp_path):
    class Late(TableBackend):
        """After this has found no record, and before it asks, somebody else measures the same."""

        def check(self, prompts, words):
            found.append(extract(table(), **SMALL, cache=tmp_path))

        def score(self, prompts, words):
            raise AssertionError("it asked")

    found: list[xr.Dataset] = []
    again = extract(Late(uniform, **SMALL, identity="table"), **SMALL, cache=tmp_path, progress=True)
    assert again.identical(found[0]) and len(list(tmp_path.iterdir())) == 1


def test_a_back_end_that_leaves_prompts_out_or_returns_nan_is_refused(tmp_path):
    class Forgets(TableBackend):
        def score(self, prompts, words):
            return islice(super().score(prompts, words), 3)

    class Broken(TableBackend):
        def score(self, prompts, words):
            wrong = -np.inf if self.identity else np.nan
            yield Scores(np.array([0]), np.array([[wrong, wrong]]), np.zeros((1, 2), bool))

    with pytest.raises(ModelError, match="left 7 prompts without an answer"):
        extract(Forgets(uniform, HIS_HER, 1), words=HIS_HER, memory_length=1)
    with pytest.raises(ModelError, match="NaN"):
        extract(Broken(uniform, HIS_HER, 1), words=HIS_HER, memory_length=1)
    with pytest.raises(InputError, match="-inf for all words"):
        extract(Broken(uniform, HIS_HER, 1, identity="m"), words=HIS_HER, memory_length=1, cache=tmp_path)
    healed = extract(TableBackend(uniform, HIS_HER, 1, identity="m"), words=HIS_HER, memory_length=1, cache=tmp_path)
    np.testing.assert_allclose(healed["q"].isel(word=0), 0.2)


# --- the store -----------------------------------------------------------------------------------------------------

ASKED = [(((0, 1),), 0), ((), 0), ((), 3), (((0, 1), (1, 0)), 0)]


def filled(path: Path | None, value: float = -1.0) -> Answers:
    answers = Answers(path)
    answers.put(ASKED[:3], np.full((3, 2), value), np.array([[False, True]] * 3))
    return answers


@pytest.mark.parametrize("kept", [True, False])
def test_of_two_answers_the_first_is_kept(tmp_path, kept):
    answers = filled(tmp_path / "a.sqlite" if kept else None)
    if kept:
        answers = filled(tmp_path / "a.sqlite", -2.0)  # as by another process
    log_p, censored = answers.get(ASKED[::-1], 2)
    np.testing.assert_array_equal(log_p, [[np.nan] * 2, *[[-1.0] * 2] * 3])
    np.testing.assert_array_equal(censored, [[False] * 2, *[[False, True]] * 3])
    assert answers.known() == [((), 0), ((), 3), (((0, 1),), 0)] and len(answers) == 3


@pytest.mark.parametrize("column", ["memory", "place", "log_probability", "censored", "checksum"])
def test_a_row_of_another_type_or_length_is_removed_and_told(column, tmp_path):
    path = tmp_path / "a.sqlite"
    filled(path)
    whole = path.read_bytes()
    for wrong in ("x", 5, b"\0", bytes(24), b"\xff" * 16):
        path.write_bytes(whole)
        with sqlite3.connect(path) as file:
            file.execute(f"UPDATE answers SET {column} = ? WHERE place = 3", (wrong,))
        with pytest.warns(UserWarning, match=f"^cache = {re.escape(str(path))}: 1 damaged answers were removed"):
            answers = Answers(path)
        assert answers.known() == [((), 0), (((0, 1),), 0)]
        answers.put(ASKED[2:3], np.full((1, 2), -3.0), np.zeros((1, 2), bool))
        assert Answers(path).get(ASKED[2:3], 2)[0].tolist() == [[-3.0, -3.0]]


def test_no_flipped_bit_changes_an_answer(tmp_path):
    """One of each byte of the numbers, and twenty others."""
    path = tmp_path / "a.sqlite"
    log_p, censored = filled(path).get(ASKED, 2)
    whole = path.read_bytes()
    number = np.float64(-1.0).tobytes() * 2
    places = [start + i for start in range(len(whole)) if whole[start:].startswith(number) for i in range(16)]
    assert len(places) == 3 * 16
    told = 0
    for number, place in enumerate([*places, *np.random.default_rng(1).integers(0, len(whole), 20)]):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << number % 8
        path.write_bytes(damaged)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                found, bounds = Answers(path).get(ASKED, 2)
            except StorageError:
                continue
        known = ~np.isnan(found)
        assert (found == log_p)[known].all() and (bounds == censored)[known].all()
        told += bool(said)
    assert told >= len(places)


def test_answers_of_a_release_without_checksums_are_kept(tmp_path):
    path = tmp_path / "a.sqlite"
    with sqlite3.connect(path) as file:
        columns = "memory BLOB, place INTEGER, log_probability BLOB, censored BLOB, PRIMARY KEY (memory, place)"
        file.execute(f"CREATE TABLE answers ({columns}) WITHOUT ROWID")
        row = b"\0\1", 0, np.array([-1.0, -2.0]).tobytes(), b"\0\1"
        file.execute("INSERT INTO answers VALUES (?, ?, ?, ?)", row)
        file.execute("INSERT INTO answers VALUES (?, ?, ?, ?)", (b"\0\0", 0, b"\0\1\2", b"\0\1"))
    with pytest.warns(UserWarning, match="1 damaged"):
        answers = Answers(path)
    assert answers.get(ASKED[:1], 2)[0].tolist() == [[-1.0, -2.0]] and len(answers) == 1
    answers.put(ASKED[1:2], np.full((1, 2), -3.0), np.zeros((1, 2), bool))
    assert len(Answers(path)) == 2


def test_a_file_that_another_process_removed_is_made_anew(tmp_path):
    answers = filled(tmp_path / "a.sqlite")
    (tmp_path / "a.sqlite").unlink()
    answers.put(ASKED[3:], np.full((1, 2), -3.0), np.zeros((1, 2), bool))
    assert Answers(tmp_path / "a.sqlite").known() == ASKED[3:]


def test_answers_that_windows_keeps_because_they_are_open_elsewhere_do_not_matter(tmp_path, monkeypatch):
    cache = _cache.RecordCache(tmp_path)
    filled(tmp_path / f"{cache._path({}).stem}.sqlite")

    def refuses(path, missing_ok=False):
        raise PermissionError(errno.EACCES, "it is open in another process", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuses)
        cache.put({}, xr.Dataset({"a": 1}))
        assert cache.get({}) is not None and len(list(tmp_path.iterdir())) == 2
    assert cache.get({}) is not None and len(list(tmp_path.iterdir())) == 1, "removed when it can be"


def test_what_the_disk_refuses_is_one_line_and_deletes_nothing(tmp_path):
    path = tmp_path / "a.sqlite"
    filled(path)
    whole = path.read_bytes()
    path.write_bytes(b"no database" * 100)
    with pytest.raises(
        StorageError, match=f"^cache = {re.escape(str(path))}: can't be read and written .*; pass another "
    ):
        Answers(path)
    assert path.read_bytes() == b"no database" * 100
    path.write_bytes(whole)
    answers = Answers(path)
    with sqlite3.connect(path) as file:
        file.execute(
            "CREATE TRIGGER full BEFORE INSERT ON answers WHEN NEW.place = 9 BEGIN SELECT RAISE(FAIL, 'full'); END"
        )
    with pytest.raises(StorageError, match=r"\(full\)"):
        answers.put([((), 8), ((), 9)], np.full((2, 2), -1.0), np.zeros((2, 2), bool))
    assert len(answers) == 3, "a portion is kept whole or not at all"
    for wrong in (path / "records", path / "records" / "a"):  # a file is no folder
        with pytest.raises(StorageError, match=f"^cache = {re.escape(str(wrong))}: can't be written .*MEANFIELD_CACHE"):
            extract(table(), **SMALL, cache=wrong)
    with pytest.raises(StorageError, match=r"^cache = x{300}: can't be written .*too long"):
        extract(table(), **SMALL, cache="x" * 300)


def test_fast_portions_are_collected_and_none_is_lost(tmp_path, monkeypatch):
    now, written, put = [1.0], [], Answers.put

    def counted(self, asked, *values):
        written.append(len(asked))
        put(self, asked, *values)

    class Ticks(TableBackend):
        def score(self, prompts, words):
            for portion in super().score(prompts, words):
                now[0] += 0.1
                yield portion

    monkeypatch.setattr(_answers.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(Answers, "put", counted)
    extract(Ticks(uniform, HIS_HER, 2, identity="ticks"), words=HIS_HER, memory_length=2, cache=tmp_path)
    assert sum(written) == 42 and 7 <= len(written) <= 10
