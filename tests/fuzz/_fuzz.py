"""Runs a function on many random inputs in a worker process, and says what it did that no function may do.

A case is a function of a numpy Generator, in a module that can be imported: it makes an input and calls the code. It
writes input files with `given`. It may return, or raise what is allowed, in one line. All else is a fault: another
exception, an end of the process, a missed deadline, too much resident memory, a file that is left or changed.

    @few_and_many([(case, 30, 3000)])
    def test_case(case, number, seed):
        assert fuzz(case, number, seed=seed) == []
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from meanfield import InputError

Case = Callable[[np.random.Generator], object]
MOST_FAULTS = 5  # a broken function need not be shown broken a thousand times
PATIENCE = 10
PROGRAMS = "compiled"  # folder of the cache
LONGEST_MESSAGE = 2000  # characters
_inputs: dict[Path, tuple[int, int]] = {}


class Fault(NamedTuple):
    """A fault that input `number` of a case brought out; `replay(case, number, seed)` does it again, here."""

    case: str
    number: int
    what: str


def few_and_many(cases: Iterable[tuple[Case, int, int]]) -> pytest.MarkDecorator:
    """Parametrises a test over (case, number, seed): a few inputs of each case and, as a slow test, many others."""
    return pytest.mark.parametrize(
        ("case", "number", "seed"),
        [
            one
            for case, few, many in cases
            for one in ((case, few, 0), pytest.param(case, many, 1, marks=pytest.mark.slow))
        ],
    )


def fuzz(
    case: Case,
    number: int,
    *,
    allowed: tuple[type[BaseException], ...] = (InputError,),
    seed: int = 0,
    deadline: float = 20.0,
    memory: float = 2.0,
    may_write: bool = False,
) -> list[Fault]:
    """The first faults in `number` inputs.

    Parameters
    ----------
    allowed
        What a case may raise.
    deadline
        Seconds of the processor for one input; in all, asleep or kept waiting by others, ten times as many.
    memory
        Resident memory of the process, in GB.
    may_write
        A case that returns may leave files, as a command with an `--out` does; one that raises may not.
    """
    faults: list[Fault] = []
    for i in range(number):
        job = case, i, seed, allowed, memory, may_write
        if what := _worker().answer(job, deadline, memory):
            faults.append(Fault(_name(case), i, what))
            if len(faults) == MOST_FAULTS:
                break
    return faults


def replay(case: Case, number: int, seed: int = 0) -> object:
    """Runs one input in this process, in the current folder."""
    return case(_random(case, number, seed))


def given(name: str, content: bytes) -> Path:
    """An input file: the code that is called may read it and has to leave it as it is."""
    path = Path(name).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    _inputs[path] = _stamp(path)
    return path


class _Worker:
    """A process that answers one job after the other, and is replaced when it doesn't."""

    def __init__(self) -> None:
        self.process = None
        self.folder = tempfile.TemporaryDirectory()

    def answer(self, job: tuple, deadline: float, memory: float) -> str:
        if self.process is None:
            self._start()
        self.connection.send(job)
        end, worked = time.monotonic() + PATIENCE * deadline, _worked(self.process.pid)
        while not self.connection.poll(0.05):
            if time.monotonic() > end or _worked(self.process.pid) - worked > deadline:
                return self._stop(f"takes more than {deadline:g} s")
            if _resident(self.process.pid, "VmRSS") > memory:
                return self._stop(f"takes more than {memory:g} GB")
        try:
            what, peak = self.connection.recv()
        except EOFError:
            self.process.join()
            return self._stop(f"ends the process with exit code {self.process.exitcode}")
        return self._stop(what) if peak > memory else what

    def _start(self) -> None:
        if "forkserver" not in multiprocessing.get_all_start_methods():
            pytest.skip("this system can't start a process for every few inputs")
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__, "validation"])
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, Path(self.folder.name).resolve()), daemon=True)
        self.process.start()
        other.close()
        self.connection.recv()  # what the first one imports takes longer than a case may

    def _stop(self, what: str) -> str:
        self.process.kill()
        self.process.join()
        self.process = None
        return what


@cache
def _worker() -> _Worker:
    return _Worker()


def _work(connection, folder: Path) -> None:
    _clear(folder)
    os.chdir(folder)
    # The folders that a program writes into unasked are all the one that is looked through.
    for variable in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "MEANFIELD_CACHE"):
        os.environ[variable] = str(folder)
    os.environ.pop("MEANFIELD_DATA", None)
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["MPLCONFIGDIR"] = str(folder / PROGRAMS)  # matplotlib writes its list of fonts at the first import
    tempfile.tempdir = str(folder)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    # As in the other tests; all else that is only warned of is no fault.
    warnings.simplefilter("ignore")
    for room in ("meanfield", "validation"):
        warnings.filterwarnings("error", category=RuntimeWarning, module=room)
    connection.send("ready")
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        what = _tried(*job)
        if _clear(folder) and not what:
            what = "leaves or changes a file"
        connection.send((what, _resident("self", "VmHWM")))


def _tried(case: Case, number: int, seed: int, allowed: tuple, memory: float, may_write: bool) -> str:
    what = ""
    try:
        case(_random(case, number, seed))
    except allowed as error:
        may_write = False
        if "\n" in str(error).strip() or len(str(error)) > LONGEST_MESSAGE:
            what = f"raises a message of {len(str(error))} characters: {str(error)[:300]!r}"
    except BaseException:
        what = "raises " + "".join(traceback.format_exc(limit=-4)).strip()
    if not what and (peak := _resident("self", "VmHWM")) > memory:
        what = f"takes {peak:.1f} GB"
    if may_write:
        _inputs.update(_files(Path.cwd()))
    return what


def _files(folder: Path) -> dict[Path, tuple[int, int]]:
    """All but compiled programs, which any call may add."""
    files = (path for path in folder.rglob("*") if not path.is_dir() and path.relative_to(folder).parts[0] != PROGRAMS)
    return {path: _stamp(path) for path in files}


def _clear(folder: Path) -> bool:
    """Empties the folder; whether it held anything but the inputs as they were given."""
    left = _files(folder) != _inputs
    _inputs.clear()
    for path in folder.iterdir():
        if path.name != PROGRAMS:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return left


def _stamp(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_size, status.st_mtime_ns


def _resident(pid: int | str, field: str) -> float:
    """GB of memory that the process holds (VmRSS) or has held (VmHWM); 0 where the system does not tell."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 2**20 for line in lines if line.startswith(field)), 0.0)


def _worked(pid: int) -> float:
    """Seconds that the processor worked for a process; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _random(case: Case, number: int, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(_name(case).encode()), number])


def _name(case: Case) -> str:
    if isinstance(case, partial):
        return f"{_name(case.func)}{case.args}"
    return case.__qualname__
