"""Each equation of the theory pages is checked by tests that exist, and quoted reasons occur in the source."""

import ast
import re
from functools import cache

import pytest

from _paths import ROOT

PAGES = [page for page in sorted((ROOT / "docs" / "theory").glob("*.md")) if page.stem not in ("index", "tests")]
TEST = re.compile(r"\{test\}`(tests/[\w/]+\.py)::(\w+)`")


@cache
def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in PAGES])
def test_tests_that_a_page_names_exist(page):
    text = page.read_text(encoding="utf-8")
    named = TEST.findall(text)
    assert len(named) == text.count("::test_") > 0
    assert [f"{path} has no {name}" for path, name in named if name not in functions(path)] == []


def test_each_section_with_an_equation_names_a_test():
    sections = [part for page in PAGES for part in page.read_text(encoding="utf-8").split("\n## ")]
    with_equations = [part for part in sections if "\n$$ (eq-" in part]
    assert len(with_equations) > len(PAGES)
    assert [part.splitlines()[0] for part in with_equations if not TEST.search(part)] == []


def test_quoted_reasons_why_theory_has_no_answer_occur():
    page = (ROOT / "docs" / "theory" / "refusals.md").read_text(encoding="utf-8")
    quoted = [re.sub(r"\s+", " ", text) for text in re.findall(r"`([^`]*)`", page) if len(text.split()) > 1]
    files = [
        file for name in ("_finite_size", "_large_deviations") for file in (ROOT / "meanfield" / name).glob("*.py")
    ]
    joined = re.sub(r'"\s*f?"', "", "".join(file.read_text(encoding="utf-8") for file in files))  # over several lines
    assert len(quoted) > 20
    assert [text for text in quoted if text not in joined] == []
