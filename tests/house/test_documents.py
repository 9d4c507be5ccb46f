"""README and the notebooks work as they stand."""

import ast
import hashlib
import re
import textwrap
from pathlib import Path

import jupytext
import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import pytest

from _paths import ROOT
from _upstream import nothing_local, put_flag_game, served
from meanfield.datasets import _ai_norms, _llm_group_size, flag_game

CODE = re.compile("```.*?```", re.DOTALL)
GENERATED = ("changes.md", "contributing.md", "tests.md")  # by `make docs`
# What Python shows of objects, and digits that say nothing
NOISE = re.compile(r"np\.\w+\(|dtype=|<Axes|<\w[\w.]* (?:object )?at 0x|<xarray|\d\.\d{12}")


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
    archives = {
        name: sha256 for name, sha256 in _ai_norms.ARCHIVES.items() if (data_folder / "ai_norms" / name).exists()
    }
    for name in archives:
        (upstream / name).symlink_to((data_folder / "ai_norms" / name).resolve())
    monkeypatch.setattr(_ai_norms, "ARCHIVES", archives)
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    with served(upstream) as url:
        nothing_local(monkeypatch, tmp_path, url)
        yield


@pytest.mark.slow
def test_example_of_the_readme_prints_what_stands_below_it(capsys):
    text = (ROOT / "README.md").read_text()
    ((code, output),) = re.findall(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", text, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == textwrap.dedent(output)


def test_links_of_pages_lead_to_files_of_a_checkout():
    pages = [page for folder in (ROOT, ROOT / "docs", *(ROOT / "docs").iterdir()) for page in folder.glob("*.md")]
    links = {
        page.relative_to(ROOT).as_posix(): re.findall(r"\]\((?!https?:|#)([^)#\s]+)", CODE.sub("", page.read_text()))
        for page in pages
        if page.name not in GENERATED
    }
    assert min(len(links["README.md"]), len(links["docs/jobs/index.md"])) > 5
    assert [(page, to) for page in links for to in links[page] if not (ROOT / page).parent.joinpath(to).exists()] == []


NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))


def play(notebook: Path) -> None:
    """Runs the cells one by one and prints what the last line of each is, as a notebook shows it."""
    names: dict[str, object] = {}
    for cell in jupytext.read(notebook).cells:
        if cell.cell_type != "code":
            continue
        *body, last = ast.parse(cell.source).body
        shown = isinstance(last, ast.Expr)
        exec(compile(ast.Module(body if shown else [*body, last], []), notebook.name, "exec"), names)
        if shown and (value := eval(compile(ast.Expression(last.value), notebook.name, "eval"), names)) is not None:
            print(repr(value))
    plt.close("all")


@pytest.mark.slow
@pytest.mark.parametrize("notebook", [pytest.param(path, id=path.stem) for path in NOTEBOOKS])
def test_notebook_runs_and_shows_what_a_reader_wants(notebook, published_upstream, capsys):
    play(notebook)
    shown = capsys.readouterr().out
    assert shown
    assert NOISE.findall(shown) == []


@pytest.mark.filterwarnings("ignore:1 of 9 interactions lack an answer")
def test_events_out_of_logs_are_what_the_page_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "how_to" / "events.md").read_text()
    logs = re.findall(r"(?:^    (?:\{|round,|\d,).*\n)+", text, re.MULTILINE)
    for name, log in zip(("log.csv", "messages.jsonl"), logs, strict=True):
        Path(name).write_text(textwrap.dedent(log))
    names: dict = {}
    for code, shown in re.findall(r"```python\n(.+?)```\n\n((?:    [^\n]*\n)+)", text, re.DOTALL):
        exec(code, names)
        assert capsys.readouterr().out == textwrap.dedent(shown)


def test_noise_is_found(tmp_path, capsys):
    notebook = tmp_path / "noisy.py"
    notebook.write_text("# %%\nimport numpy as np\n[np.str_('a'), 0.1 + 0.2]\n# %%\nnp.zeros(2, 'f4')\n")
    play(notebook)
    assert NOISE.findall(capsys.readouterr().out) == ["np.str_(", "0.300000000000", "dtype="]


def test_every_notebook_is_listed():
    listed = (ROOT / "docs" / "notebooks" / "index.md").read_text().split()
    assert [path.stem for path in NOTEBOOKS if path.stem not in listed] == []
