"""A measurement that ends early goes on where it stopped."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import zarr

from meanfield import InputError, MemorySpace, ModelError, StorageError
from policy_extraction import extract
from policy_extraction.backends._backend import Scores
from policy_extraction.backends._table import TableBackend
from policy_extraction.measuring import _store
from policy_extraction.measuring._store import PROMPTS_A_FILE, Measured

HIS_HER = ("his", "her")
ROOT = Path(__file__).resolve().parents[1]
MEMORY_LENGTH = 3
N_PROMPTS = 2 * MemorySpace(2, MEMORY_LENGTH).n_states
PORTION = 16

# Measures in portions, and tells of each one after it was handed over.
MEASURE = f"""
import sys, time
sys.path.insert(0, {str(ROOT / "tests")!r})
from _tiny_models import SHORT
from policy_extraction import extract
from policy_extraction.measuring import _store
from policy_extraction.backends.local import _transformers

_transformers.PORTION = {PORTION}
_store.WRITING_SHARE = float("inf")
score = _transformers.TransformersBackend.score

def slow_score(self, prompts, words):
    for portion in score(self, prompts, words):
        yield portion
        print("portion", flush=True)
        time.sleep(0.1)

_transformers.TransformersBackend.score = slow_score
extract(sys.argv[1], words=("his", "her"), memory_length={MEMORY_LENGTH}, template=SHORT, cache=sys.argv[2])
print("done", flush=True)
"""


def uniform(memory, order):
    return {"his": 0.25, "her": 0.5}


class Breaks(TableBackend):
    """Answers some prompts and then fails, or is interrupted."""

    def __init__(self, answers: int, error: type[BaseException] = RuntimeError) -> None:
        super().__init__(uniform, HIS_HER, 2, identity="breaks")
        self.left, self.error, self.asked = answers, error, 0

    def score(self, prompts, words):
        for portion in super().score(prompts, words):
            if not self.left:
                raise self.error
            self.left -= 1
            self.asked += 1
            yield portion


@pytest.fixture
def folder(tmp_path):
    pytest.importorskip("torch", reason="language models need the extra llm")
    pytest.importorskip("transformers", reason="language models need the extra llm")
    from _tiny_models import tiny

    model, tokenizer = tiny()
    model.save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_killed_process_is_continued_with_the_same_result(folder, tmp_path, monkeypatch):
    from _tiny_models import SHORT
    from policy_extraction.backends.local import _transformers

    records = tmp_path / "records"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", MEASURE, str(folder), str(records)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    told = [process.stdout.readline().strip() for _ in range(4)]
    process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    assert told == ["portion"] * 4, errors
    assert process.returncode == -signal.SIGKILL
    (unfinished,) = records.glob("*.zarr")
    assert len([path for path in unfinished.rglob("*") if path.is_file()]) < 10
    known = ~np.isnan(np.asarray(zarr.open_array(unfinished, mode="r"))).any((1, 2))
    assert known.sum() in (4 * PORTION, 5 * PORTION), "what was handed over is on disk"

    asked = []
    score = _transformers.TransformersBackend.score

    def counted(self, prompts, words):
        asked.append(len(prompts))
        return score(self, prompts, words)

    monkeypatch.setattr(_transformers, "PORTION", PORTION)
    monkeypatch.setattr(_transformers.TransformersBackend, "score", counted)
    options = {"words": HIS_HER, "memory_length": MEMORY_LENGTH, "template": SHORT}
    continued = extract(str(folder), cache=records, **options)
    assert asked == [N_PROMPTS - known.sum()]
    assert continued.identical(extract(str(folder), cache=False, **options)), "equal to the last bit"
    assert not list(records.glob("*.zarr")) and len(list(records.glob("*.nc"))) == 1


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_what_was_handed_over_is_never_asked_again(tmp_path, error):
    options = {"words": HIS_HER, "memory_length": 2, "cache": tmp_path}
    first = Breaks(10, error)
    with pytest.raises(error):
        extract(first, **options)
    second = Breaks(1000)
    policy = extract(second, **options)
    assert (first.asked, second.asked) == (10, 42 - 10)
    assert (policy["q"].values == extract(Breaks(1000), **{**options, "cache": False})["q"].values).all()
    extract(Breaks(0), **options)  # finished: nothing is asked any more


def test_progress_counts_what_is_known(tmp_path, capsys):
    options = {"words": HIS_HER, "memory_length": 2, "cache": tmp_path}
    with pytest.raises(RuntimeError):
        extract(Breaks(30), **options)
    extract(Breaks(12), progress=True, **options)
    assert "42/42" in capsys.readouterr().err


def test_what_is_on_disk_is_used_and_not_measured(tmp_path):
    options = {"words": HIS_HER, "memory_length": 2, "cache": tmp_path}
    with pytest.raises(RuntimeError):
        extract(Breaks(10), **options)
    (unfinished,) = tmp_path.glob("*.zarr")
    zarr.open_array(unfinished, mode="r+")[3] = [[-1.0, 0], [-2.0, 1]]
    with pytest.raises(InputError, match="undecided"):  # a censored word came from the file
        extract(Breaks(1000), **options)


def scores(*numbers: int, value: float = -1.0, censored: bool = False) -> Scores:
    shape = (len(numbers), 2)
    return Scores(np.array(numbers), np.full(shape, value), np.full(shape, censored))


@pytest.mark.parametrize("damage", ["metadata", "nothing", "nesting", "kind", "shape", "chunk", "half", "bit"])
def test_a_damaged_store_is_measured_anew(tmp_path, damage):
    folder = tmp_path / "a.zarr"
    Measured(folder, 5, 2).add(scores(*range(5)))
    assert len(Measured(folder, 5, 2).missing) == 0
    if damage in ("metadata", "nothing", "nesting"):
        (folder / "zarr.json").write_text({"metadata": "{", "nothing": "null", "nesting": "[" * 100_000}[damage])
    if damage == "kind":
        zarr.open_group(folder, mode="w").create_array("log_probability", data=np.ones((5, 2)))
    if damage in ("chunk", "half", "bit"):
        chunk = folder / "c" / "0" / "0" / "0"
        whole = chunk.read_bytes()
        flipped = whole[:8] + bytes([whole[8] ^ 1]) + whole[9:]
        chunk.write_bytes({"chunk": b"no numbers", "half": whole[: len(whole) // 2], "bit": flipped}[damage])
    n_prompts = 6 if damage == "shape" else 5
    again = Measured(folder, n_prompts, 2)
    assert len(again.missing) == n_prompts
    again.add(scores(2))
    assert Measured(folder, n_prompts, 2).missing.tolist() == [n for n in range(n_prompts) if n != 2]


@pytest.mark.parametrize("name", ["open", "read", "memory", "thread"])
def test_an_error_that_is_no_damage_deletes_nothing(tmp_path, monkeypatch, name):
    folder = tmp_path / "a.zarr"
    Measured(folder, 5, 2).add(scores(1, 3))
    error, seen = {
        "memory": (MemoryError(), MemoryError),
        "thread": (RuntimeError("can't start new thread"), RuntimeError),
    }.get(name, (OSError(errno.EMFILE, "Too many open files"), StorageError))

    def fail(*_, **__):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(*((_store.zarr, "open_array") if name != "read" else (zarr.Array, "__array__")), fail)
        with pytest.raises(seen) as caught:
            Measured(folder, 5, 2)
    if seen is StorageError:
        assert str(caught.value) == f"cache = {folder}: can't be read and written (Too many open files)"
    assert Measured(folder, 5, 2).missing.tolist() == [0, 2, 4]


def test_a_store_that_is_not_found_is_no_damage(tmp_path):
    """What is left of a store that another process is making or removing is left to that one."""
    folder = tmp_path / "a.zarr"
    Measured(folder, 5, 2).add(scores(1, 3))
    (folder / "zarr.json").rename(tmp_path / "away")
    assert len(Measured(folder, 5, 2).missing) == 5
    (tmp_path / "away").rename(folder / "zarr.json")
    assert Measured(folder, 5, 2).missing.tolist() == [0, 2, 4]


def test_a_write_that_fails_is_one_line_and_is_made_up_for(tmp_path, monkeypatch):
    store = Measured(tmp_path / "a.zarr", 5, 2)
    store.add(scores(0))
    store._rest_until = 0.0

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(zarr.Array, "__setitem__", full)
        with pytest.raises(StorageError, match=r"can't be read and written \(No space left on device\)"):
            store.add(scores(1))
    assert Measured(tmp_path / "a.zarr", 5, 2).missing.tolist() == [1, 2, 3, 4]
    store.write()
    assert Measured(tmp_path / "a.zarr", 5, 2).missing.tolist() == [2, 3, 4]


@pytest.mark.parametrize("processes", [2, 1])
def test_of_two_processes_on_a_record_none_gives_a_value_the_flag_of_the_other(tmp_path, monkeypatch, processes):
    """The second one writes whenever the first one is about to; alone, the first one loses nothing."""
    monkeypatch.setattr(_store, "PROMPTS_A_FILE", 4)
    n, folder, came_between = 24, tmp_path / "a.zarr", 0
    first, second = Measured(folder, n, 2), Measured(folder, n, 2)
    first._rest_until = second._rest_until = np.inf
    put = zarr.Array.__setitem__

    def come_between(array, rows, value):
        nonlocal came_between
        came_between += 1
        monkeypatch.setattr(zarr.Array, "__setitem__", put)
        second._unwritten = {rows.start // 4}
        second.write()
        put(array, rows, value)
        monkeypatch.setattr(zarr.Array, "__setitem__", come_between)

    first.add(scores(*range(0, n, 2), value=-1.0, censored=True))
    second.add(scores(*range(1, n, 2), value=-2.0, censored=False))
    if processes == 2:
        monkeypatch.setattr(zarr.Array, "__setitem__", come_between)
    first.write()
    read = Measured(folder, n, 2)
    known = np.setdiff1d(np.arange(n), read.missing)
    assert came_between == (6 if processes == 2 else 0)
    assert len(known) == n // 2
    np.testing.assert_array_equal(read.censored[known], read.log_probability[known] == -1.0)


def test_what_another_process_removes_does_not_end_a_measurement(tmp_path):
    n, folder = 2 * PROMPTS_A_FILE, tmp_path / "a.zarr"
    first, second = Measured(folder, n, 2), Measured(folder, n, 2)
    second.add(scores(0))
    first.remove()
    assert not folder.exists()
    second._rest_until = 0.0
    second.add(scores(n - 1))
    assert np.setdiff1d(np.arange(n), second.missing).tolist() == [0, n - 1]
    assert np.setdiff1d(np.arange(n), Measured(folder, n, 2).missing).tolist() == [n - 1]


def test_what_another_process_is_removing_is_written_later(tmp_path, monkeypatch):
    folder = tmp_path / "a.zarr"
    store = Measured(folder, 5, 2)
    put = zarr.Array.__setitem__

    def removed_just_now(array, rows, value):
        shutil.rmtree(folder)
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(zarr.Array, "__setitem__", removed_just_now)
    store.add(scores(0))
    assert not folder.exists() and store.missing.tolist() == [1, 2, 3, 4]
    monkeypatch.setattr(zarr.Array, "__setitem__", put)
    store.write()
    assert Measured(folder, 5, 2).missing.tolist() == [1, 2, 3, 4]


def test_fast_portions_are_collected_and_none_is_lost(tmp_path, monkeypatch):
    n = 3 * PROMPTS_A_FILE + 1
    now = [0.0]
    monkeypatch.setattr(_store.time, "monotonic", lambda: now[0])
    store = Measured(tmp_path / "a.zarr", n, 2)
    write, written = store.write, []

    def slow_write():
        written.append(len(store._unwritten))
        write()
        now[0] += 1.0
        store._rest_until = now[0] + 9.0

    monkeypatch.setattr(store, "write", slow_write)
    order = np.random.default_rng(0).permutation(n)
    for number in order:
        now[0] += 0.01
        store.add(Scores(np.array([number]), np.array([[-number, -1.0]], float), np.array([[False, True]])))
    assert 2 <= len(written) <= 5
    store.write()
    again = Measured(tmp_path / "a.zarr", n, 2)
    assert (again.log_probability[:, 0] == -np.arange(n)).all()
    assert (again.censored == [False, True]).all()
    again.remove()
    assert not (tmp_path / "a.zarr").exists()


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
