"""What README and the notebooks show works as it stands there."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def published_here(data_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("MEANFIELD_DATA", str(data_folder))
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")


def test_example_of_the_readme(published_here):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len(blocks) == 1
    assert len(blocks[0].strip().splitlines()) == 8
    exec(compile(blocks[0], "README.md", "exec"), {})


def test_links_of_the_readme_to_files():
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", (ROOT / "README.md").read_text())
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


LONG = ("landscape", "norm_emergence")


@pytest.mark.parametrize(
    "notebook",
    [
        pytest.param(path, id=path.stem, marks=pytest.mark.slow if path.stem in LONG else ())
        for path in sorted((ROOT / "notebooks").glob("*.py"))
    ],
)
def test_notebook_runs(notebook, published_here):
    runpy.run_path(str(notebook))


def test_notebooks_are_notebooks(tmp_path):
    for notebook in (ROOT / "notebooks").glob("*.py"):
        target = tmp_path / f"{notebook.stem}.ipynb"
        command = [sys.executable, "-m", "jupytext", "--to", "ipynb", "--output", str(target), str(notebook)]
        subprocess.run(command, check=True, capture_output=True)
        assert target.read_text().count('"cell_type": "code"') >= 3
