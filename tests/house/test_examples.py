"""Examples in docstrings: every public function and class has one, and what it shows is true."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import meanfield
import policy_extraction
import theory
import validation
from _public_names import PUBLIC, things

KNOWN = {"np": np, "pd": pd, "xr": xr}
KNOWN |= {one.__name__: one for one in (meanfield, policy_extraction, theory, validation)}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
WITHOUT_EXAMPLE = {
    "meanfield.ModelError": "needs a language model or a server that fails",
    "policy_extraction.UnparsedError": "needs a language model that answers beside the question",
    "meanfield.StorageError": "needs a full disk, or one that can't be written",
    "policy_extraction.backends.api.ServerError": "needs a server that fails",
}


def is_shown_elsewhere(thing: Any) -> bool:
    """Whether it is a contract that others fulfil, or a tuple of results whose docstring names the function."""
    if not inspect.isclass(thing):
        return False
    contract = inspect.isabstract(thing) or getattr(thing, "_is_protocol", False)
    result = issubclass(thing, tuple) and "\nSee Also\n--------\n" in (inspect.getdoc(thing) or "")
    return contract or result


def lacking(found: Iterator[tuple[str, Any]]) -> list[str]:
    return [
        name for name, thing in found if ">>> " not in (inspect.getdoc(thing) or "") and not is_shown_elsewhere(thing)
    ]


def untrue(name: str, thing: Any) -> list[str]:
    """Reports of its examples, and its methods', whose output is not as shown."""
    report: list[str] = []
    for found in doctest.DocTestFinder().find(thing, name, module=False, globs=dict(KNOWN)):  # type: ignore[arg-type]
        doctest.DocTestRunner(optionflags=FLAGS).run(found, out=report.append)
    return report


@pytest.mark.parametrize("package", PUBLIC)
def test_every_function_and_class_has_an_example(package: str) -> None:
    assert [name for name in lacking(things(package)) if f"{package}.{name}" not in WITHOUT_EXAMPLE] == []


def test_what_needs_no_example_is_there_and_has_none() -> None:
    for path in WITHOUT_EXAMPLE:
        package, _, name = path.rpartition(".")
        assert lacking(iter([(name, getattr(import_module(package), name))])) == [name]


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("package", PUBLIC)
def test_the_examples_are_true(package: str, tmp_path, monkeypatch) -> None:
    """With nothing but the package: no published measurements, and nothing kept from earlier."""
    monkeypatch.chdir(tmp_path)
    for name in ("MEANFIELD_DATA", "MEANFIELD_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setitem(plt.rcParams, "backend", "Agg")
    monkeypatch.setitem(plt.rcParams, "figure.max_open_warning", 0)
    report = [line for name, thing in things(package) for line in untrue(name, thing)]
    plt.close("all")
    assert not report, "".join(report)


def test_an_example_that_is_not_true_is_found() -> None:
    def wrong() -> None:
        """Adds.

        >>> 1 + 1
        3
        """

    assert "Expected:\n    3\nGot:\n    2\n" in "".join(untrue("wrong", wrong))
