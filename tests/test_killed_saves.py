"""A process that is killed while it saves, and what it leaves in the folder of records."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import meanfield
from meanfield import StorageError
from policy_extraction import extract
from policy_extraction.backends._table import TableBackend
from policy_extraction.measuring import _cache

ROOT = Path(__file__).resolve().parents[1]
GAME = {"words": ("his", "her"), "memory_length": 1}
# Kills itself inside the last save: before the file is whole, before it has its name, or after that.
KILLED = """
import os, pathlib, signal, sys
from policy_extraction import extract
from policy_extraction.measuring import _cache, _store
from test_killed_saves import GAME, table

folder, place = sys.argv[1:]
kill = lambda *arguments, **options: os.kill(os.getpid(), signal.SIGKILL)
if place == "writing":
    import xarray
    xarray.Dataset.to_netcdf = lambda dataset, path, **options: (pathlib.Path(path).write_bytes(b"half"), kill())
if place == "written":
    pathlib.Path.replace = kill
if place == "kept":
    _store.Measured.remove = kill
extract(table(), **GAME, cache=folder)
"""


def table() -> TableBackend:
    return TableBackend(lambda memory, order: {"his": 0.25, "her": 0.5}, **GAME, identity="table")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
@pytest.mark.parametrize("place", ["writing", "written", "kept"])
def test_the_next_run_clears_what_a_killed_save_left(place: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests")))}
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), place], env=environment, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert any(path.is_dir() for path in tmp_path.iterdir()), "there is something to clear"
    policy = extract(table(), **GAME, cache=tmp_path)
    (kept,) = tmp_path.iterdir()
    assert kept.suffix == ".nc" and policy.identical(extract(table(), **GAME, cache=False))


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), RuntimeError("HDF5: can't write")])
def test_a_full_disk_at_the_last_save_loses_nothing(error: Exception, tmp_path: Path, monkeypatch) -> None:
    """Raised in place of the system, since not every one lets a test mount a disk that is full."""
    asked, score = [], TableBackend.score

    def counted(self, prompts, words):
        asked.extend(prompts)
        return score(self, prompts, words)

    monkeypatch.setattr(TableBackend, "score", counted)

    def full(*arguments):
        raise error

    monkeypatch.setattr(_cache, "save", full)
    with pytest.raises(StorageError, match=f"cache = {tmp_path}.*what was measured is kept, start again") as told:
        extract(table(), **GAME, cache=tmp_path)
    assert "\n" not in str(told.value) and len(asked) == 10
    monkeypatch.setattr(_cache, "save", meanfield.save)
    extract(table(), **GAME, cache=tmp_path)
    assert len(asked) == 10, "nothing is asked again"
