"""What several test files share: the published policies and random ones."""

from __future__ import annotations

import os
from pathlib import Path

import jaxtyping
import pytest
import xarray as xr

import meanfield

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of the published measurements: MEANFIELD_DATA, or shared/data beside the project."""
    folder = Path(os.environ.get("MEANFIELD_DATA", SHARED_DATA))
    if not folder.is_dir():
        pytest.skip(f"the published measurements are not at {folder}; set MEANFIELD_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def published(data_folder: Path) -> xr.Dataset:
    """The published policies of GPT-4o and Llama 3.1 70B."""
    return meanfield.datasets.llm_group_size(data_folder).sel(model=["gpt-4o", "llama31_70B"])


@pytest.fixture
def unchecked_types():
    """Arguments of a wrong type reach the code, as they do outside the tests."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
