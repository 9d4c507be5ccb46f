"""Import names that other distributions also use resolve to this project."""

import importlib
import subprocess
import sys
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


@pytest.mark.parametrize("layout", ["theory.py", "theory/__init__.py"])
@pytest.mark.parametrize("first", ["", pytest.param("import theory; ", marks=pytest.mark.slow)])
def test_a_folder_of_the_user_that_hides_a_package_is_named(tmp_path, layout, first):
    hiding = tmp_path / layout
    hiding.parent.mkdir(exist_ok=True)
    hiding.write_text("")

    def ran(code: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, "-c", first + code], cwd=tmp_path, capture_output=True, text=True)

    warned = ran("import meanfield; print(meanfield.datasets)")
    assert warned.returncode == 0
    assert f"{hiding} hides the package 'theory' of meanfield: rename it" in warned.stderr
    needed = ran("import validation")
    assert needed.returncode == 1
    assert needed.stderr.splitlines()[-1].startswith(f"ImportError: {hiding} hides the package 'theory'")
    command = subprocess.run([sys.executable, "-m", "meanfield"], cwd=tmp_path, capture_output=True, text=True)
    assert command.returncode == 1 and "Traceback" not in command.stderr
    assert command.stderr.splitlines()[-1].startswith(f"meanfield: {hiding} hides the package 'theory'")


def test_a_folder_that_hides_nothing_is_not_named(tmp_path):
    (tmp_path / "theory").mkdir()  # no package: Python prefers ours
    code = "import validation, theory; print(theory.fit_mechanism1)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
