"""README, pages and notebooks work as they stand, and say in prose what their cells print."""

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

import meanfield
import policy_extraction
from _paths import ROOT
from _upstream import nothing_local, put_flag_game, served
from meanfield.datasets import _ai_norms, _llm_group_size, flag_game

DOCS = ROOT / "docs"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))
JOBS = sorted(page for page in (DOCS / "jobs").glob("*.md") if page.name != "index.md")
TROUBLE = DOCS / "what_can_go_wrong.md"
GENERATED = ("changes.md", "contributing.md", "tests.md")  # by `make docs`
CODE = re.compile("```.*?```", re.DOTALL)
CELL = re.compile(r"^```\{code-cell\}\n(?P<options>---\n.*?^---\n)?(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"```python\n(.+?)```\n\n((?:    [^\n]*\n)+)", re.DOTALL)  # code with its output below
DECIMAL = re.compile(r"(?<![\w.])\d+\.\d+(?![\w.]*\d)")
# What Python shows of objects, and digits that say nothing
NOISE = re.compile(r"np\.\w+\(|dtype=|<Axes|<\w[\w.]* (?:object )?at 0x|<xarray|\d\.\d{12}")


def play(cells: list[str], name: str, *, echo: bool = True) -> None:
    """Runs cells one by one, with `echo` printing what the last line of each is, as a notebook shows it."""
    mpl.use("Agg")
    names: dict[str, object] = {}
    for cell in cells:
        *body, last = ast.parse(cell).body
        shown = echo and isinstance(last, ast.Expr)
        exec(compile(ast.Module(body if shown else [*body, last], []), name, "exec"), names)
        if shown and (value := eval(compile(ast.Expression(last.value), name, "eval"), names)) is not None:
            print(repr(value))
    plt.close("all")


# --- notebooks ---


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
    there = data_folder / "ai_norms"
    archives = {name: sha256 for name, sha256 in _ai_norms.ARCHIVES.items() if (there / name).exists()}
    for name in archives:
        (upstream / name).symlink_to((there / name).resolve())
    monkeypatch.setattr(_ai_norms, "ARCHIVES", archives)
    monkeypatch.chdir(tmp_path)
    with served(upstream) as url:
        nothing_local(monkeypatch, tmp_path, url)
        yield


def code_of(notebook: Path) -> list[str]:
    return [cell.source for cell in jupytext.read(notebook).cells if cell.cell_type == "code"]


@pytest.mark.slow
@pytest.mark.parametrize("notebook", [pytest.param(path, id=path.stem) for path in NOTEBOOKS])
def test_notebook_runs_and_shows_what_a_reader_wants(notebook, published_upstream, capsys):
    play(code_of(notebook), notebook.name)
    shown = capsys.readouterr().out
    assert shown and NOISE.findall(shown) == []


def test_noise_is_found(tmp_path, capsys):
    notebook = tmp_path / "noisy.py"
    notebook.write_text("# %%\nimport numpy as np\n[np.str_('a'), 0.1 + 0.2]\n# %%\nnp.zeros(2, 'f4')\n")
    play(code_of(notebook), notebook.name)
    assert NOISE.findall(capsys.readouterr().out) == ["np.str_(", "0.300000000000", "dtype="]


def test_every_notebook_and_job_is_listed():
    listed = (DOCS / "notebooks" / "index.md").read_text(encoding="utf-8").split()
    assert [path.stem for path in NOTEBOOKS if path.stem not in listed] == []
    index = (DOCS / "jobs" / "index.md").read_text(encoding="utf-8")
    assert [page.name for page in JOBS if f"]({page.name})" not in index or f"\n{page.stem}\n" not in index] == []


# --- pages ---


@pytest.mark.slow
def test_example_of_the_readme_prints_what_stands_below_it(capsys):
    ((code, output),) = SHOWN.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == textwrap.dedent(output)


@pytest.mark.filterwarnings("ignore:1 of 9 interactions lack an answer")
def test_events_out_of_logs_are_what_the_page_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "how_to" / "events.md").read_text(encoding="utf-8")
    logs = re.findall(r"(?:^    (?:\{|round,|\d,).*\n)+", text, re.MULTILINE)
    for name, log in zip(("log.csv", "messages.jsonl"), logs, strict=True):
        Path(name).write_text(textwrap.dedent(log))
    names: dict = {}
    for code, shown in SHOWN.findall(text):
        exec(code, names)
        assert capsys.readouterr().out == textwrap.dedent(shown)


def test_links_of_pages_lead_to_files_of_a_checkout():
    pages = [page for folder in (ROOT, DOCS, *DOCS.iterdir()) for page in folder.glob("*.md")]
    links = {
        page.relative_to(ROOT).as_posix(): re.findall(r"\]\((?!https?:|#)([^)#\s]+)", CODE.sub("", page.read_text()))
        for page in pages
        if page.name not in GENERATED
    }
    assert min(len(links["README.md"]), len(links["docs/jobs/index.md"])) > 5
    assert [(page, to) for page in links for to in links[page] if not (ROOT / page).parent.joinpath(to).exists()] == []


def prose(text: str) -> str:
    """A page without its head, cells, tables, blocks of code and names in code."""
    without_head = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    without_cells = re.sub(r"^```.*?^```$", "", CELL.sub("", without_head), flags=re.DOTALL | re.MULTILINE)
    without_tables = re.sub(r"^(\||    ).*$", "", without_cells, flags=re.MULTILINE)
    return re.sub(r"`[^`]*`", "", without_tables)


def unsaid(text: str, shown: str) -> list[str]:
    """Decimal numbers of the prose, as such or in per cent, that no cell has shown."""
    known = [float(number) for number in DECIMAL.findall(shown)]

    def is_known(number: str, per_cent: bool) -> bool:
        digits = len(number.partition(".")[2]) + 2 * per_cent
        value = float(number) / (100 if per_cent else 1)
        return any(abs(round(one, digits) - value) < 1e-9 for one in known)

    found = [(match[0], text[match.end() : match.end() + 2] == " %") for match in DECIMAL.finditer(text)]
    return [number for number, per_cent in found if not is_known(number, per_cent)]


PLAYED = [*JOBS, TROUBLE, DOCS / "how_to" / "gradients.md"]


@pytest.mark.slow
@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in PLAYED])
def test_numbers_in_prose_are_those_that_cells_show(page, capsys):
    text = page.read_text(encoding="utf-8")
    cells = [cell["code"] for cell in CELL.finditer(text)]
    play(cells, page.name, echo=False)
    shown = capsys.readouterr().out
    assert shown and unsaid(prose(text), shown + "\n".join(cells)) == []


def test_an_invented_number_is_found():
    """The control: rounding and per cent are allowed, other digits are not."""
    assert unsaid("A share of 0.47, or 46.7 %, or 1.", "0.4671") == []
    assert unsaid("A share of 0.48, or 46.8 %.", "0.4671") == ["0.48", "46.8"]


def test_every_error_is_explained():
    packages = meanfield, policy_extraction
    errors = [f"{one.__name__}.{name}" for one in packages for name in one.__all__ if name.endswith("Error")]
    text = TROUBLE.read_text(encoding="utf-8")
    assert len(errors) == 6 and [name for name in errors if f"`{name}`" not in text] == []
    explained = {name.rpartition(".")[2] for name in errors} - {"MeanfieldError"}
    assert [name for name in explained if f"\n## {name}\n" not in text] == []
