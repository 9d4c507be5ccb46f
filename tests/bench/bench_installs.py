"""Seconds and megabytes of an install, by Python, by the age of the dependencies, and with extras."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from _installs import LOWEST, NEWEST, PYTHONS, build, check, install, interpreter
from _tables import show

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
COLUMNS = ("Python", "dependencies", "extras", "s", "MB", "check, s")
EXTRAS = (("api",), ("cluster",), ("llm",))


def test_installs() -> None:
    cases = [(version, age, ()) for version in PYTHONS for age in (LOWEST, NEWEST)]
    cases += [(HERE, NEWEST, extras) for extras in EXTRAS]
    with tempfile.TemporaryDirectory() as name:
        wheel, _ = build(Path(name))
        rows = [
            (version, age.partition("-")[0], ", ".join(extras), *taken(version, wheel, age, extras))
            for version, age, extras in cases
        ]
    show("installed with uv, bytecode compiled; the check goes the whole way once", COLUMNS, rows)


def taken(version: str, wheel: Path, age: str, extras: tuple[str, ...]) -> tuple[str, ...]:
    python = interpreter(version)
    if python is None:
        return "not on this machine", "", ""
    with tempfile.TemporaryDirectory() as name:
        installed = install(Path(name) / "environment", python, wheel, age, extras)
        begin = time.monotonic()
        done = check(installed.python, Path(name), *extras)
        told = f"{time.monotonic() - begin:.0f}" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]
        return f"{installed.seconds:.0f}", f"{installed.megabytes:,.0f}", told
