"""What README and the notebooks show works as it stands there."""

import hashlib
import re
import runpy
import subprocess
import sys
import textwrap

import matplotlib as mpl
import pandas as pd
import pytest

from _paths import ROOT
from _upstream import nothing_local, put_flag_game, served
from meanfield.datasets import _llm_group_size, flag_game


@pytest.fixture
def published_upstream(data_folder, tmp_path, monkeypatch):
    """Data as somebody gets them who has nothing but the package and a network; the upstream is on loopback."""
    upstream = tmp_path / "upstream"
    sweep = flag_game("population_scaling_gpt4o", data_folder)
    others = sweep.assign(condition="all_gpt_5_4", correct_consensus_count=0)
    put_flag_game(upstream, "population_scaling_gpt4o", pd.concat([others, sweep]), monkeypatch)
    policies = data_folder / "llm_group_size" / _llm_group_size.NAME
    (upstream / policies.name).symlink_to(policies.resolve())
    monkeypatch.setattr(_llm_group_size, "SHA256", hashlib.sha256(policies.read_bytes()).hexdigest())
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    with served(upstream) as url:
        nothing_local(monkeypatch, tmp_path, url)
        yield


def test_example_of_the_readme_prints_what_stands_below_it(capsys):
    text = (ROOT / "README.md").read_text()
    ((code, output),) = re.findall(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", text, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == textwrap.dedent(output)


def test_links_of_the_readme_to_files():
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", (ROOT / "README.md").read_text())
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "notebook",
    [pytest.param(path, id=path.stem) for path in sorted((ROOT / "notebooks").glob("*.py"))],
)
def test_notebook_runs(notebook, published_upstream):
    runpy.run_path(str(notebook))


def test_notebooks_are_notebooks(tmp_path):
    for notebook in (ROOT / "notebooks").glob("*.py"):
        target = tmp_path / f"{notebook.stem}.ipynb"
        command = [sys.executable, "-m", "jupytext", "--to", "ipynb", "--output", str(target), str(notebook)]
        subprocess.run(command, check=True, capture_output=True)
        assert target.read_text().count('"cell_type": "code"') >= 3
