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


@pytest.fixture
def run(monkeypatch):
    """Runs a script as `python -m` does."""

    def run(script: str, *arguments: object) -> None:
        monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
        runpy.run_path(str(FOLDER / f"{script}.py"), run_name="__main__")

    return run


@pytest.mark.parametrize("script", SCRIPTS)
def test_only_two_files_are_taken(run, script, tmp_path):
    names = [tmp_path / f"missing-{k}.nc" for k in range(3)]
    for given in ([], names[:1], names):
        with pytest.raises(SystemExit, match=rf"^usage: python -m paper_figs.{script} [^\n]*$"):
            run(script, *given)
    with pytest.raises(SystemExit, match=r"^error: [^\n]*missing-0.nc[^\n]*$"):
        run(script, *names[:2])
    assert not any(name.exists() for name in names)


def test_a_script_writes_its_figure(run, tmp_path):
    solution = meanfield.solve(random_policy(1), times=np.linspace(0, 5, 6))
    meanfield.save(solution, tmp_path / "solution.nc")
    run("mean_field_dynamics", tmp_path / "solution.nc", tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
