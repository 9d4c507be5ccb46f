"""Scripts of figures at the command line: what is wrong with the arguments is one line, and exit code 1."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import meanfield
import paper_figs
from _policies import random_policy

FOLDER = Path(paper_figs.__file__).parent
SCRIPTS = sorted(path.stem for path in FOLDER.glob("[!_]*.py"))
FILES = {
    "group_size_collapse": 2,
    "mean_field_dynamics": 2,
    "table_s1": 2,
    "theory_and_simulation": 2,
}


@pytest.fixture
def run(monkeypatch):
    """Runs a script as `python -m` does."""

    def run(script: str, *arguments: object) -> None:
        monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
        runpy.run_path(str(FOLDER / f"{script}.py"), run_name="__main__")

    return run


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_without_arguments_says_what_it_takes(run, script):
    with pytest.raises(SystemExit) as end:
        run(script)
    # What is no number is printed, and the exit code is 1
    assert str(end.value.code).startswith(f"usage: python -m paper_figs.{script} ")
    assert "\n" not in end.value.code


@pytest.mark.parametrize(("script", "number"), FILES.items())
def test_only_the_right_number_of_files_is_taken(run, script, number, tmp_path):
    names = [tmp_path / f"missing-{k}.nc" for k in range(number + 1)]
    for given in (names[: number - 1], names):
        with pytest.raises(SystemExit, match=f"^usage: python -m paper_figs.{script} "):
            run(script, *given)
    with pytest.raises(SystemExit, match=r"^error: .*missing-0.nc") as end:
        run(script, *names[:number])
    assert "\n" not in end.value.code
    assert not any(name.exists() for name in names)


def test_a_script_writes_its_figure(run, tmp_path):
    solution = meanfield.solve(random_policy(1), times=np.linspace(0, 5, 6))
    meanfield.save(solution, tmp_path / "solution.nc")
    run("mean_field_dynamics", tmp_path / "solution.nc", tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_errors_of_other_kinds_keep_their_traceback(run, tmp_path, monkeypatch):
    def broken(name: str) -> None:
        raise RuntimeError(name)

    monkeypatch.setattr(meanfield, "load", broken)
    with pytest.raises(RuntimeError, match=r"result.nc"):
        run("table_s1", "result.nc", tmp_path / "table.csv")
