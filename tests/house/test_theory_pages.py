"""Each equation of the theory pages is checked by tests that exist."""

import ast
import re

import pytest

from _paths import ROOT

PAGES = [page for page in sorted((ROOT / "docs" / "theory").glob("*.md")) if page.stem not in ("index", "tests")]
TEST = re.compile(r"\{test\}`(tests/[\w/]+\.py)::(\w+)`")


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in PAGES])
def test_tests_that_a_page_names_exist(page):
    text = page.read_text(encoding="utf-8")
    named = TEST.findall(text)
    assert len(named) == text.count("::test_") > 0
    for path, name in named:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert name in {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}, f"{path} has no {name}"


def test_each_section_with_an_equation_names_a_test():
    sections = [part for page in PAGES for part in page.read_text(encoding="utf-8").split("\n## ")]
    with_equations = [part for part in sections if "\n$$ (eq-" in part]
    assert len(with_equations) > len(PAGES)
    assert [part.splitlines()[0] for part in with_equations if not TEST.search(part)] == []
