"""Compiled programs kept on disk: a new process loads them in a tenth of the seconds that compiling takes."""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.serialize_executable import deserialize_and_load, serialize
from jax.tree_util import Partial

from meanfield.toolbox._cache_folder import cache_folder

LOADER = b"cpu_aot_loader"  # whose complaints about tuning flags of the processor are not errors
# Each program takes 100 to 300 of the 65,530 mappings that Linux allows a process, and one that needs more crashes
KEPT_IN_MEMORY = 64
# Compiling takes a third less time; most programs run as fast, some up to a fifth slower. The last two keep the
# caller's settings out.
OPTIONS = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_backend_optimization_level": 1,
    "xla_llvm_disable_expensive_passes": False,
}
_lock = threading.RLock()  # of what is compiled, which changes settings of Equinox


def exported(module: str, function: str, *, first: int | None = None) -> Callable:
    """`function` of `module`, compiled in 64 bits for the shapes of its arguments, or loaded from the cache folder.

    Arguments are arrays, numbers and tuples of them, options are keywords; results are NumPy arrays, and of a tuple the
    `first` ones only. `module` is imported only to compile: importing and tracing its solvers takes longer than most
    programs run. A program is kept for one release of JAX, one kind of processor and one state of `meanfield.core`; a
    damaged one is made anew. Functions among the arguments are `Partial`s, whose programs are not kept on disk. Memory
    holds the programs that were used last.
    """

    def call(*arguments: Any, **options: Any) -> Any:
        values = jax.tree.map(np.asarray, arguments)
        leaves, structure = jax.tree.flatten(values)
        shapes = tuple((value.shape, value.dtype.str) for value in leaves)
        with in_double_precision():
            results = _program(module, function, structure, shapes, *sorted(options.items()))(*values)
            return jax.tree.map(np.array, results if first is None else results[:first])

    return call


@lru_cache(KEPT_IN_MEMORY)
def _program(module: str, function: str, structure: Any, shapes: tuple, *options: tuple[str, Any]) -> Any:
    """The program for arguments of this structure, whose leaves have these shapes and types."""
    arguments = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*leaf) for leaf in shapes])
    leaves = jax.tree.leaves(arguments, is_leaf=lambda one: isinstance(one, Partial))
    kept = not any(isinstance(one, Partial) for one in leaves)
    described = repr((module, function, structure, shapes, *options))
    with _lock:
        path = _folder() / f"{function}-{_digest(described.encode())[:32]}" if kept else None
        return (path and _load(path)) or _compile(module, function, arguments, dict(options), path)


@contextmanager
def in_double_precision() -> Iterator[None]:
    """64 bits, on the processor."""
    with jax.enable_x64(True), jax.default_device(_device()):
        yield


def _compile(module: str, function: str, arguments: Any, options: dict, path: Path | None) -> Any:
    errors: Any = import_module("equinox._errors")
    source = getattr(import_module(module), function)
    before = errors.EQX_ON_ERROR
    # Equinox raises by a call back into Python, which a program on disk can't hold: results carry codes instead.
    errors.EQX_ON_ERROR = "nan"
    try:
        lowered = jax.jit(lambda *arguments: source(*arguments, **options)).lower(*arguments)
        try:
            compiled = lowered.compile(compiler_options=OPTIONS)
        except jax.errors.JaxRuntimeError:  # of another release, which does not know them
            compiled = lowered.compile()
    finally:
        errors.EQX_ON_ERROR = before
    if path is None:
        return compiled
    with suppress(Exception):  # there is no folder to write to, or the program holds a call back all the same
        content = pickle.dumps(("lapack" in lowered.as_text(), serialize(compiled)))
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(_digest(content).encode() + content)
        Path(file.name).replace(path)
    return compiled


def _load(path: Path) -> Any:
    """The program in a file, or None where there is none that is whole."""
    try:
        status = path.stat()
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            return None  # others could have written it: to load a program is to run it
        data = path.read_bytes()
        if _digest(data[64:]).encode() != data[:64]:
            return None
        uses_lapack, program = pickle.loads(data[64:])
        if uses_lapack:
            _lower_a_solution()
        with _quiet_loader():
            return deserialize_and_load(*program)
    except Exception:  # of a library that changed, or a file that did: the program is made anew
        return None


@cache
def _lower_a_solution() -> None:
    """Let JAX look up LAPACK, as it does when it lowers a program and not when it loads one, which would then crash."""
    jax.jit(jnp.linalg.solve).lower(np.eye(1), np.ones(1))


@cache
def _device() -> Any:
    """The processor: for one policy a GPU is slower, and results do not depend on there being one."""
    with suppress(RuntimeError):  # JAX was told to leave it alone
        return jax.devices("cpu")[0]
    return jax.devices()[0]


@cache
def _folder() -> Path:
    """A folder for this JAX, processor and state of the core: programs are machine code."""
    sources = b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))
    flags = ""
    with suppress(OSError):
        flags = next(
            (line for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if "flags" in line), ""
        )
    traced_by = [version(name) for name in ("jax", "jaxlib", "diffrax", "equinox", "optimistix", "lineax")]
    machine = (sys.version, platform.platform(), platform.processor(), flags, _device().device_kind)
    described = (traced_by, machine, os.environ.get("XLA_FLAGS"))
    return cache_folder() / "compiled" / _digest(repr(described).encode() + sources)[:16]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def _quiet_loader() -> Iterator[None]:
    """Pass on the process's standard error, except for lines of XLA's loader.

    It reports tuning flags that the same processor had set when the program was compiled.
    """
    try:
        kept = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            for line in file:
                if LOADER not in line:
                    os.write(2, line)
