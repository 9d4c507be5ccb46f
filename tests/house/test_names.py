"""Import names that other distributions also use resolve to this project."""

import importlib
from pathlib import Path

import pytest

from _paths import ROOT


@pytest.mark.parametrize("name", ["meanfield", "policy_extraction", "theory", "validation", "paper_figs"])
def test_packages_are_those_of_this_project(name):
    """`meanfield` and `validation` are also names of unrelated distributions on PyPI."""
    assert Path(importlib.import_module(name).__file__).parent == ROOT / name


@pytest.mark.parametrize("name", ["meanfield", "policy_extraction", "theory", "validation", "paper_figs"])
def test_public_names_are_documented(name):
    package = importlib.import_module(name)
    public = [value for key, value in vars(package).items() if not key.startswith("_") and callable(value)]
    # Python writes a docstring of its own, the signature, for dataclasses and named tuples.
    assert all((value.__doc__ or "").strip() and not value.__doc__.startswith(f"{value.__name__}(") for value in public)
