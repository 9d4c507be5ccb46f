"""Fixtures of the tests of figures."""

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Numbers that one test computed are found by the others."""
    return tmp_path_factory.mktemp("numbers")
