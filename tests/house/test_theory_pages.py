"""Each equation of the theory pages is checked by tests that exist."""

import ast
import re

import pytest

from _paths import ROOT

PAGES = [page for page in sorted((ROOT / "docs" / "theory").glob("*.md")) if page.stem != "index"]
TEST = re.compile(r"\[`(tests/[\w/]+\.py)::(\w+)`\]\(([\w./]+)\)")


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in PAGES])
def test_tests_that_a_page_names_exist_where_its_links_lead(page):
    text = page.read_text(encoding="utf-8")
    named = TEST.findall(text)
    assert len(named) == text.count("::test_") > 0
    for path, name, link in named:
        assert (page.parent / link).resolve() == ROOT / path
        functions = {one.name for one in ast.parse((ROOT / path).read_text(encoding="utf-8")).body if hasattr(one, "name")}
        assert name in functions, f"{path} has no {name}"


def test_sections_with_equations_name_a_test():
    """The section that introduces the game, or sums up, has no equation."""
    for page in PAGES:
        for section in page.read_text(encoding="utf-8").split("\n## ")[1:]:
            assert "\n$$ (eq-" not in section or TEST.search(section), f"{page.name}: {section.splitlines()[0]}"
