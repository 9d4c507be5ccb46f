"""Pages that answer questions: what they say in prose is what their cells print."""

import ast
import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

import meanfield
import policy_extraction
from _paths import ROOT

DOCS = ROOT / "docs"
JOBS = sorted(page for page in (DOCS / "jobs").glob("*.md") if page.name != "index.md")
TROUBLE = DOCS / "what_can_go_wrong.md"
GRADIENTS = DOCS / "how_to" / "gradients.md"
CELL = re.compile(r"^```\{code-cell\}\n(?P<options>---\n.*?^---\n)?(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
DECIMAL = re.compile(r"(?<![\w.])\d+\.\d+(?![\w.]*\d)")


def cells(page: Path) -> list[str]:
    return [cell["code"] for cell in CELL.finditer(page.read_text())]


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


def play(page: Path) -> None:
    names: dict[str, object] = {}
    for code in cells(page):
        exec(compile(ast.parse(code), page.name, "exec"), names)
    plt.close("all")


@pytest.mark.slow
@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in [*JOBS, TROUBLE, GRADIENTS]])
def test_numbers_in_prose_are_those_that_cells_show(page, capsys):
    mpl.use("Agg")
    play(page)
    shown = capsys.readouterr().out
    assert shown
    assert unsaid(prose(page.read_text()), shown + "\n".join(cells(page))) == []


def test_an_invented_number_is_found():
    """The control: rounding and per cent are allowed, other digits are not."""
    assert unsaid("A share of 0.47, or 46.7 %, or 1.", "0.4671") == []
    assert unsaid("A share of 0.48, or 46.8 %.", "0.4671") == ["0.48", "46.8"]


def test_every_job_is_listed():
    index = (DOCS / "jobs" / "index.md").read_text(encoding="utf-8")
    assert [page.name for page in JOBS if f"]({page.name})" not in index or f"\n{page.stem}\n" not in index] == []


def test_every_error_is_explained():
    packages = meanfield, policy_extraction
    errors = [f"{one.__name__}.{name}" for one in packages for name in one.__all__ if name.endswith("Error")]
    assert len(errors) == 6
    text = TROUBLE.read_text()
    assert [name for name in errors if f"`{name}`" not in text] == []
    explained = {name.rpartition(".")[2] for name in errors} - {"MeanfieldError"}
    assert [name for name in explained if f"\n## {name}\n" not in text] == []
