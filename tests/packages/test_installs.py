"""The wheel works in an empty environment, with the lowest and the newest releases of what it needs.

All that it needs has wheels for every system, so that nobody needs a compiler.
"""

from __future__ import annotations

import json
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from _installs import LOWEST, NEWEST, PYTHONS, check, install, interpreter, releases_for
from _paths import ROOT

pytestmark = pytest.mark.slow

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
SYSTEMS = {
    "Linux": "x86_64-unknown-linux-gnu",
    "Linux on ARM": "aarch64-unknown-linux-gnu",
    "Windows": "x86_64-pc-windows-msvc",
    "macOS on Apple silicon": "aarch64-apple-darwin",
}
LARGEST = 1300.0  # megabytes without extras; jaxlib, llvmlite and SciPy are more than half of it


@pytest.fixture
def folder() -> Iterator[Path]:
    """Deleted at once: pytest keeps its own folders, and an environment has a gigabyte."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.parametrize("resolution", [LOWEST, NEWEST])
@pytest.mark.parametrize("version", PYTHONS)
def test_without_extras(version: str, resolution: str, built: tuple[Path, Path], folder: Path) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    installed = install(folder / "environment", python, built[0], resolution)
    assert installed.megabytes < LARGEST
    done = check(installed.python, folder)
    assert done.returncode == 0, done.stderr
    used = json.loads(done.stdout.splitlines()[-1])["releases"]
    assert "torch" not in used
    if resolution == LOWEST and version == PYTHONS[0]:
        assert_lowest(used)


def assert_lowest(used: dict[str, str]) -> None:
    """On the oldest Python every bound is met exactly: a higher one would promise what was never tried."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for wanted in map(Requirement, project["dependencies"]):
        (lowest,) = [one.version for one in wanted.specifier if one.operator == ">="]
        assert Version(used[wanted.name.lower()]) == Version(lowest), wanted


@pytest.mark.parametrize("resolution", [LOWEST, NEWEST])
def test_with_extras(resolution: str, built: tuple[Path, Path], folder: Path) -> None:
    """Without `llm`, which may bring gigabytes for GPUs; bench_installs.py has it."""
    python = interpreter(HERE)
    assert python is not None
    extras = ("api", "cluster")
    installed = install(folder / "environment", python, built[0], resolution, extras)
    done = check(installed.python, folder, *extras)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("version", PYTHONS)
def test_wheels_exist(version: str, system: str) -> None:
    found = releases_for(version, SYSTEMS[system], NEWEST)
    assert {"jaxlib", "llvmlite", "numpy", "python-flint", "scipy"} <= set(found)


def test_a_system_without_wheels_is_found() -> None:
    """JAX has none for Macs with a processor of Intel; the page on installing says so."""
    with pytest.raises(RuntimeError, match="jaxlib"):
        releases_for(PYTHONS[0], "x86_64-apple-darwin", NEWEST)
