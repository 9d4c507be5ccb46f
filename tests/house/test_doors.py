"""The public names of the packages: every name is there, and what a program does not use it does not import."""

import inspect
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOMS = ("meanfield", "theory", "validation")
HEAVY = ["numba", "sympy", "optax", "pandas", "xarray", "scipy.stats", "matplotlib", "zarr"]


def run(code: str, **environment: str) -> str:
    """The output of a fresh process that runs the code."""
    own = {name: value for name, value in os.environ.items() if name != "JAX_ENABLE_X64"}  # which this process has set
    own |= environment
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=own)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_is_there(room):
    door = import_module(room)
    assert door.__all__
    assert set(door.__all__) <= set(dir(door))
    for name in door.__all__:
        assert getattr(door, name) is not None
    with pytest.raises(AttributeError, match=f"module '{room}' has no attribute 'nothing'"):
        door.nothing  # noqa: B018
    with pytest.raises(ImportError):
        exec(f"from {room} import nothing")


def test_help_lists_every_name_by_job():
    names, text = import_module("meanfield").__all__, import_module("meanfield").__doc__
    assert [name for name in names if f"`{name}`" not in text] == []
    assert len(names) <= 45, "what others need is for meanfield.toolbox"


def test_heavy_packages_are_imported_when_they_are_needed():
    """The control is the last line: the same names after a function is used."""
    code = f"""
import sys, meanfield, theory, validation
print([name for name in {HEAVY} if name in sys.modules])
validation.simulate
print([name for name in {HEAVY} if name in sys.modules])
"""
    before, after = run(code).splitlines()
    assert before == "[]"
    assert "numba" in after
    assert "xarray" in after


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


DOORS = [
    "meanfield",
    "meanfield.datasets",
    "theory.naming_game",
    "theory.minimal_naming_game",
    "theory.norms",
    "theory.flag_game",
    "theory.flag_game.evidence",
    "theory.flag_game.gossip",
    "theory.flag_game.mechanism1",
    "theory.flag_game.mechanism2",
    "theory.flag_game.random_field",
    "validation.naming_game",
    "validation.minimal_naming_game",
    "validation.flag_game",
    "validation.reactions",
    "validation.populations",
    "validation.comparison",
    "policy_extraction.prompts",
    "policy_extraction.backends",
    "policy_extraction.measuring",
    "policy_extraction.checks",
    "policy_extraction.flag_game",
    "policy_extraction.norms",
]


def test_doors_show_no_module_of_another_package():
    """In a fresh process, since checked types bring a module of their own."""
    code = f"""
import inspect
from importlib import import_module
for room in {DOORS}:
    door = import_module(room)
    for name in dir(door):
        value = getattr(door, name)
        if not name.startswith("_") and inspect.ismodule(value) and not value.__name__.startswith(room + "."):
            print(room, name)
"""
    assert run(code) == ""


def test_type_checkers_find_the_types_of_every_package():
    for package in ("meanfield", "policy_extraction", "theory", "validation", "paper_figs"):
        assert (Path(import_module(package).__file__).parent / "py.typed").is_file()


def test_help_is_short_and_imports_nothing():
    """The control is the room whose docstring does not list its names: there help describes them."""
    code = f"""
import pydoc, sys, meanfield, validation
print(len(pydoc.plain(pydoc.render_doc(meanfield)).splitlines()))
print([name for name in {HEAVY} if name in sys.modules])
print(sorted(set(meanfield.__all__) - set(dir(meanfield))))
shown, listed = pydoc.render_doc(meanfield), dir(meanfield)
print([name for name in ("__dir__", "__getattr__") if name in shown or name not in listed])
print(len(pydoc.plain(pydoc.render_doc(validation)).splitlines()))
"""
    length, heavy, missing, functions, other = run(code).splitlines()
    assert int(length) < 80 < int(other)
    assert heavy == missing == functions == "[]"


@pytest.mark.parametrize("room", DOORS)
def test_functions_name_their_neighbours(room):
    """Every function with parameters has a section See Also, whose names are there."""
    door = import_module(room)
    for name in getattr(door, "__all__", [name for name in vars(door) if not name.startswith("_")]):
        text = inspect.getdoc(getattr(door, name)) or ""
        if not inspect.isfunction(getattr(door, name)) or "\nParameters\n" not in text:
            continue
        assert "\nSee Also\n--------\n" in text, name
        for line in text.partition("\nSee Also\n--------\n")[2].partition("\n\n")[0].splitlines():
            for neighbour in line.partition(" : ")[0].split(", "):
                assert any(found(neighbour, start) for start in (door, import_module("meanfield"))), (name, neighbour)


def found(name, start):
    """Whether `start` has this name, or the room that its path says."""
    path, _, last = name.rpartition(".")
    return hasattr(import_module(path) if path else start, last)
