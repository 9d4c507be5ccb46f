"""Fixtures of several test files: the published policies and random ones."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
import jax.extend.backend
import jaxtyping
import pytest
import xarray as xr

import meanfield

jax.config.update("jax_enable_x64", True)
SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
gc.disable()  # a quarter of the time of collection is a search for garbage among the imported modules


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def few_programs():
    """A process that holds thousands of compiled programs runs out of mappings of memory, and crashes."""
    yield
    if len(jax.extend.backend.get_backend().live_executables()) > 400:
        jax.clear_caches()


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
    with _types_unchecked():  # for the time that they take; tests of the loader check them
        return meanfield.datasets.llm_group_size(data_folder).sel(model=["gpt-4o", "llama31_70B"])


@pytest.fixture
def unchecked_types():
    """Arguments of a wrong type reach the code, as they do outside the tests, and long calculations take less time."""
    with _types_unchecked():
        yield


@contextmanager
def _types_unchecked() -> Iterator[None]:
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)
