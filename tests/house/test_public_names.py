"""The public names of the packages: each is there, is ours, and imports what it needs when it is used."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import meanfield
from _paths import ROOT
from _public_names import PUBLIC, things

PACKAGES = ("meanfield", "policy_extraction", "theory", "validation", "paper_figs")
HEAVY = ["numba", "sympy", "optax", "pandas", "xarray", "scipy.stats", "matplotlib", "zarr"]


def run(code: str, **environment: str) -> str:
    """The output of a fresh process that runs the code."""
    own = {name: value for name, value in os.environ.items() if name != "JAX_ENABLE_X64"}  # which this process has set
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=own | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_are_those_of_this_project_with_their_types(package):
    """`meanfield` and `validation` are also names of unrelated distributions on PyPI."""
    folder = Path(import_module(package).__file__).parent
    assert folder == ROOT / package and (folder / "py.typed").is_file()


@pytest.mark.parametrize("package", ["meanfield", "theory", "validation"])
def test_every_name_is_there(package):
    module = import_module(package)
    assert module.__all__ and set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018
    assert package != "meanfield" or [name for name in module.__all__ if f"`{name}`" not in module.__doc__] == []


def test_heavy_packages_are_imported_when_they_are_needed():
    """The control is the last line: the same names after functions are used."""
    code = f"""
import sys, meanfield, theory, validation
print([name for name in {HEAVY} if name in sys.modules])
meanfield.plot, validation.simulate
print([name for name in {HEAVY} if name in sys.modules])
"""
    before, after = run(code).splitlines()
    assert before == "[]" and "numba" in after and "xarray" in after and "matplotlib" not in after


@pytest.mark.slow
def test_solutions_compile_once_a_machine(tmp_path):
    """The controls are the first process, which compiles, and a function that is compiled anew in each."""
    code = """
import jax, logging, numpy as np, meanfield
seen = []
handler = logging.Handler()
handler.emit = lambda record: seen.append(record.getMessage())
logging.getLogger("jax").addHandler(handler)
jax.config.update("jax_log_compiles", True)
policy = meanfield.make_policy(np.array([0.6, 0.9, 0.5, 0.4, 0.15]), ["a", "b"])
meanfield.solve(policy), meanfield.finite_size(policy, times=np.array([1.0]))
print(sum("Finished XLA compilation" in line for line in seen))
jax.jit(lambda x: x + 1)(1.0)
print(sum("Finished XLA compilation" in line for line in seen))
"""
    first, _ = map(int, run(code, MEANFIELD_CACHE=str(tmp_path)).split())
    second, control = map(int, run(code, MEANFIELD_CACHE=str(tmp_path)).split())
    assert second == 0 < min(first, control)


@pytest.mark.parametrize("package", sorted(set(PUBLIC) - {"meanfield.core"}))
def test_functions_name_neighbours_that_are_there(package):
    """Every function with parameters has a section See Also."""
    for name, thing in things(package):
        text = inspect.getdoc(thing) or ""
        if not inspect.isfunction(thing) or "\nParameters\n" not in text:
            continue
        assert "\nSee Also\n--------\n" in text, name
        for line in text.partition("\nSee Also\n--------\n")[2].partition("\n\n")[0].splitlines():
            for neighbour in line.partition(" : ")[0].split(", "):
                path, _, last = neighbour.rpartition(".")
                known = [import_module(path)] if path else [import_module(package), meanfield]
                assert any(hasattr(module, last) for module in known), (name, neighbour)


@pytest.mark.parametrize("layout", ["theory.py", pytest.param("theory/__init__.py", marks=pytest.mark.slow)])
@pytest.mark.parametrize("first", ["", pytest.param("import theory; ", marks=pytest.mark.slow)])
def test_a_folder_of_the_user_that_hides_a_package_is_named(tmp_path, layout, first):
    hiding = tmp_path / layout
    hiding.parent.mkdir(exist_ok=True)
    hiding.write_text("", encoding="utf-8")

    def ran(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True)

    warned = ran("-c", first + "import meanfield; print(meanfield.datasets)")
    assert warned.returncode == 0
    assert f"{hiding} hides the package 'theory' of meanfield: rename it" in warned.stderr
    needed = ran("-c", first + "import validation")
    assert needed.returncode == 1
    assert needed.stderr.splitlines()[-1].startswith(f"ImportError: {hiding} hides the package 'theory'")
    command = ran("-m", "meanfield")
    assert command.returncode == 1 and "Traceback" not in command.stderr
    assert command.stderr.splitlines()[-1].startswith(f"meanfield: {hiding} hides the package 'theory'")


def test_a_folder_that_hides_nothing_is_not_named(tmp_path):
    (tmp_path / "theory").mkdir()  # no package: Python prefers ours
    code = "import validation, theory; print(theory.__all__)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
