"""A measurement that ends early goes on where it stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import zarr

from meanfield import InputError, MemorySpace
from policy_extraction import _store, extract
from policy_extraction._backend import Scores
from policy_extraction._store import PROMPTS_A_FILE, Measured
from policy_extraction._table import TableBackend

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
from policy_extraction import _store, extract
from policy_extraction.local import _transformers

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
    from policy_extraction.local import _transformers

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
    known = ~np.isnan(zarr.open_group(unfinished, mode="r")["log_probability"][:]).any(1)
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
    group = zarr.open_group(unfinished, mode="r+")
    group["log_probability"][3] = [-1.0, -2.0]
    group["censored"][3] = [False, True]
    with pytest.raises(InputError, match="undecided"):  # a censored word came from the file
        extract(Breaks(1000), **options)


@pytest.mark.parametrize("damage", ["metadata", "shape", "chunk"])
def test_a_damaged_store_is_measured_anew(tmp_path, damage):
    store = Measured(tmp_path / "a.zarr", 5, 2)
    store.add(Scores(np.arange(5), np.full((5, 2), -1.0), np.zeros((5, 2), bool)))
    assert len(Measured(tmp_path / "a.zarr", 5, 2).missing) == 0
    if damage == "metadata":
        (tmp_path / "a.zarr" / "zarr.json").write_text("{")
    if damage == "chunk":
        (chunk,) = (tmp_path / "a.zarr" / "log_probability" / "c").rglob("0/0")
        chunk.write_bytes(b"not compressed")
    n_prompts = 6 if damage == "shape" else 5
    assert len(Measured(tmp_path / "a.zarr", n_prompts, 2).missing) == n_prompts


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

    with pytest.raises(InputError, match="left 7 prompts without an answer"):
        extract(Forgets(uniform, HIS_HER, 1), words=HIS_HER, memory_length=1)
    with pytest.raises(InputError, match="NaN"):
        extract(Broken(uniform, HIS_HER, 1), words=HIS_HER, memory_length=1)
    with pytest.raises(InputError, match="-inf for all words"):
        extract(Broken(uniform, HIS_HER, 1, identity="m"), words=HIS_HER, memory_length=1, cache=tmp_path)
    healed = extract(TableBackend(uniform, HIS_HER, 1, identity="m"), words=HIS_HER, memory_length=1, cache=tmp_path)
    np.testing.assert_allclose(healed["q"].isel(word=0), 0.2)
