"""Empty environments with this project in them, and what they take."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from _paths import ROOT

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
LOWEST, NEWEST = "lowest-direct", "highest"  # of the releases that the bounds of pyproject.toml allow
CHECK = ROOT / "tests" / "packages" / "check_installed.py"


class Installed(NamedTuple):
    """An environment, and what installing took."""

    python: Path
    seconds: float
    megabytes: float


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution, in `folder`; a warning of the build is an error here."""
    command = [sys.executable, "-m", "build", "--outdir", folder, ROOT]
    done = subprocess.run(command, capture_output=True, text=True)
    told = done.stdout + done.stderr
    if done.returncode or "warning" in told.lower():
        raise RuntimeError(told)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


def interpreter(version: str) -> Path | None:
    """A Python of this version on this machine, also one that pyenv has built; None if there is none."""
    found = _uv("python", "find", "--no-python-downloads", "--system", version, check=False)
    if found.returncode == 0:
        return Path(found.stdout.strip())
    builds = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    return next(iter(sorted(builds.glob(f"{version}.*/bin/python"))), None)


def releases_for(version: str, system: str, resolution: str) -> dict[str, str]:
    """Name and release of all that the package needs there; RuntimeError if something has no wheel."""
    where = ("--python-version", version, "--python-platform", system, "--only-binary", ":all:")
    options = ("--no-header", "--no-annotate", "--resolution", resolution)
    told = _uv("pip", "compile", *where, *options, ROOT / "pyproject.toml").stdout
    return dict(line.partition(";")[0].strip().split("==") for line in told.splitlines() if "==" in line)


def install(folder: Path, python: Path, wheel: Path, resolution: str = NEWEST, extras: Sequence[str] = ()) -> Installed:
    """Make an environment in `folder` with the wheel, and the lowest or the newest releases of what it needs.

    Releases that have no wheel for this Python are passed over, as by somebody without compilers.
    """
    _uv("venv", "--python", python, folder)
    inside = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    begin = time.monotonic()
    options = ("--python", inside, "--compile-bytecode", "--only-binary", ":all:", "--resolution", resolution)
    wanted = [argument for extra in extras for argument in ("--extra", extra)]
    if "llm" in extras:  # one release of PyTorch: each that an index has for Linux brings gigabytes for GPUs
        wanted += ["--constraints", str(ROOT / "constraints.txt")]
    _uv("pip", "install", *options, "--requirements", ROOT / "pyproject.toml", *wanted)
    _uv("pip", "install", "--python", inside, "--compile-bytecode", "--no-deps", wheel)
    seconds = time.monotonic() - begin
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return Installed(inside, seconds, sum(path.stat().st_size for path in files) / 1e6)


def check(python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `check_installed.py` in an empty folder, without anything of this environment or of the repository."""
    kept = {"PATH", "SYSTEMROOT", "TEMP", "TMP", "LD_LIBRARY_PATH", "OPENBLAS_NUM_THREADS", "OMP_WAIT_POLICY"}
    own = {name: value for name, value in os.environ.items() if name.upper() in kept}
    own |= {"HOME": str(folder), "USERPROFILE": str(folder), "MEANFIELD_CACHE": str(folder / "cache")}
    command = [python, "-P", CHECK, *arguments]
    return subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, encoding="utf-8")


def _uv(*arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "uv", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(f"uv {' '.join(map(str, arguments))}: {done.stderr}")
    return done
