"""Everything that the package needs has wheels for every system, so that nobody needs a compiler."""

from __future__ import annotations

import pytest

from _installs import NEWEST, PYTHONS, releases_for

SYSTEMS = {
    "Linux": "x86_64-unknown-linux-gnu",
    "Linux on ARM": "aarch64-unknown-linux-gnu",
    "Windows": "x86_64-pc-windows-msvc",
    "macOS on Apple silicon": "aarch64-apple-darwin",
}


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("version", PYTHONS)
def test_wheels_exist(version: str, system: str) -> None:
    found = releases_for(version, SYSTEMS[system], NEWEST)
    assert {"jaxlib", "llvmlite", "numpy", "python-flint", "scipy"} <= set(found)


@pytest.mark.slow
def test_a_system_without_wheels_is_found() -> None:
    """JAX has none for Macs with a processor of Intel; the page on installing says so."""
    with pytest.raises(RuntimeError, match="jaxlib"):
        releases_for(PYTHONS[0], "x86_64-apple-darwin", NEWEST)
