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
import resource
import shutil
import signal
import tempfile
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
PROGRAMS = "compiled"  # folder of the cache, to which any call may add
LONGEST_MESSAGE = 2000  # characters
_inputs: dict[Path, bytes] = {}


class Fault(NamedTuple):
    """A fault that input `number` of a case brought out; `replay(case, number, seed)` does it again, here."""

    case: str
    number: int
    what: str


def few_and_many(cases: Iterable[tuple[Case, int, int]]) -> pytest.MarkDecorator:
    """Parametrises a test over (case, number, seed): a few inputs of each case and, as a slow test, many others."""
    rows = []
    for case, few, many in cases:
        rows += [(case, few, 0), pytest.param(case, many, 1, marks=pytest.mark.slow)]
    return pytest.mark.parametrize(("case", "number", "seed"), rows)


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
        Seconds of the processor for one input, after which it ends by SIGPROF; in all, asleep or kept waiting by
        others, ten times as many, after which it ends by SIGALRM.
    memory
        Resident memory of the process, in GB.
    may_write
        A case that returns may leave files, as a command with an `--out` does; one that raises may not.
    """
    faults: list[Fault] = []
    for i in range(number):
        if what := _worker().answer((case, i, seed, allowed, deadline, memory, may_write)):
            faults.append(Fault(_name(case), i, what))
            if len(faults) == MOST_FAULTS:
                break
    return faults


def replay(case: Case, number: int, seed: int = 0) -> object:
    """Runs one input in this process, in the current folder."""
    return case(np.random.default_rng([seed, zlib.crc32(_name(case).encode()), number]))


def given(name: str, content: bytes) -> Path:
    """An input file: the code that is called may read it and has to leave it as it is."""
    path = Path(name).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    _inputs[path] = content
    return path


class _Worker:
    """A process that answers one job after the other, and is replaced when it doesn't."""

    def __init__(self) -> None:
        self.process = None
        self.folder = tempfile.TemporaryDirectory()

    def answer(self, job: tuple) -> str:
        if self.process is None:
            self._start()
        *_, memory, _ = job
        self.connection.send(job)
        while not self.connection.poll(0.05):
            if _resident(self.process.pid) > memory:
                return self._stop(f"takes more than {memory:g} GB")
        try:
            what, peak = self.connection.recv()
        except EOFError:
            self.process.join()
            return self._stop(f"ends the process: {_reason(self.process.exitcode)}")
        return self._stop(what or f"takes {peak:.1f} GB") if peak > memory else what

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
    os.environ |= dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "MEANFIELD_CACHE"), str(folder))
    os.environ |= {"HF_HUB_OFFLINE": "1", "MPLCONFIGDIR": str(folder / PROGRAMS)}  # with a list of fonts
    os.environ.pop("MEANFIELD_DATA", None)
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
        left = _clear(folder)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        connection.send((what or ("leaves or changes a file" if left else ""), peak))


def _tried(case: Case, number: int, seed: int, allowed: tuple, deadline: float, _: float, may_write: bool) -> str:
    what = ""
    signal.setitimer(signal.ITIMER_PROF, deadline)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE * deadline)
    try:
        replay(case, number, seed)
    except allowed as error:
        may_write = False
        if "\n" in str(error).strip() or len(str(error)) > LONGEST_MESSAGE:
            what = f"raises a message of {len(str(error))} characters: {str(error)[:300]!r}"
    except BaseException:
        what = "raises " + "".join(traceback.format_exc(limit=-4)).strip()
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    if may_write:
        _inputs.update(_files(Path.cwd()))
    return what


def _files(folder: Path) -> dict[Path, bytes]:
    files = (path for path in folder.rglob("*") if not path.is_dir() and path.relative_to(folder).parts[0] != PROGRAMS)
    return {path: path.read_bytes() for path in files}


def _clear(folder: Path) -> bool:
    """Empties the folder; whether it held anything but the inputs as they were given."""
    left = _files(folder) != _inputs
    _inputs.clear()
    for path in folder.iterdir():
        if path.name != PROGRAMS:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return left


def _resident(pid: int) -> float:
    """GB of memory that the process holds; 0 where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * resource.getpagesize() / 2**30


def _reason(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _name(case: Case) -> str:
    return f"{_name(case.func)}{case.args}" if isinstance(case, partial) else case.__qualname__


# Damaged copies of valid files

EDGES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
LONGEST_PIECE = 64  # bytes


def mutated(random: np.random.Generator, data: bytes) -> bytes:
    """`data` after one to four mutations, each at a random place."""
    content = bytearray(data)
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        if content:
            _mutate(random, content)
    return bytes(content)


def _mutate(random: np.random.Generator, content: bytearray) -> None:
    at, to, size = *random.integers(len(content), size=2).tolist(), int(random.integers(1, LONGEST_PIECE))
    match random.choice(["bit", "bit", "byte", "number", "number", "end", "piece", "copy", "noise", "zeros"]):
        case "bit":
            content[at] ^= 1 << random.integers(8)
        case "byte":
            content[at] = random.integers(256)
        case "number":  # such as a length: 1, 2, 4 or 8 bytes, in either order
            size = int(random.choice([1, 2, 4, 8]))
            value = EDGES[random.integers(len(EDGES))] % 256**size
            content[at : at + size] = value.to_bytes(size, "little" if random.random() < 0.7 else "big")
        case "end":
            del content[at:]
        case "piece":
            del content[at : at + size]
        case "copy":  # of a piece over another, or in between
            content[to : to + size * int(random.random() < 0.5)] = content[at : at + size]
        case "noise":
            content[at : at + size] = random.bytes(size)
        case "zeros":
            content[at : at + size] = bytes(size)
