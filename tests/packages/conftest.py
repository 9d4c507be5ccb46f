"""The packages that a release consists of, built once for all tests here."""

from pathlib import Path

import pytest

from _installs import build


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the source distribution."""
    return build(tmp_path_factory.mktemp("dist"))
