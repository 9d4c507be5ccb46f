"""The role `test` names a test. It leads to a page with the source of all tests that the theory pages name."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.roles import XRefRole

from reference import keep

NAMED = re.compile(r"\{test\}`(tests/[\w/]+\.py)::(\w+)`")
INTRODUCTION = """# The tests behind the equations

The tests that the theory pages name, as they stand in the project. `.venv/bin/pytest FILE::NAME` runs one of them.
"""


def label(path: str, name: str) -> str:
    return f"{Path(path).stem}-{name}".replace("_", "-").lower()


def write(app: Sphinx, config: Config) -> None:
    folder = Path(app.srcdir) / "theory"
    target = folder / "tests.md"
    pages = [page.read_text(encoding="utf-8") for page in folder.glob("*.md") if page != target]
    named = sorted({found for page in pages for found in NAMED.findall(page)})
    files = sorted({path for path, _ in named})
    parts = [file_part(path, [name for other, name in named if other == path]) for path in files]
    keep(target, "\n".join([INTRODUCTION, *parts]))


def file_part(path: str, names: list[str]) -> str:
    head = [f"## {title(Path(path).stem)}", "", f"In `{path}`.", ""]
    return "\n".join([*head, *(function_part(path, name) for name in names)])


def function_part(path: str, name: str) -> str:
    source = f"```{{literalinclude}} ../../{path}\n:pyobject: {name}\n```"
    return f"({label(path, name)})=\n### {title(name)}\n\n{source}\n"


def title(name: str) -> str:
    return name.removeprefix("test_").replace("_", " ").capitalize()


class Test(XRefRole):
    """A reference whose target is a test as pytest names it, and whose title is the name of its function."""

    def process_link(
        self, env: BuildEnvironment, refnode: nodes.Element, has_explicit_title: bool, title: str, target: str
    ) -> tuple[str, str]:
        path, name = target.split("::")
        refnode["refdomain"], refnode["reftype"] = "std", "keyword"  # a label whose title stays as it is
        return name, label(path, name)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_role("test", Test(innernodeclass=nodes.literal, warn_dangling=True))
    app.connect("config-inited", write)
    return {"parallel_read_safe": True}
