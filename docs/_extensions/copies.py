"""Brings pages that are kept elsewhere into the site: notebooks, changes, how to work on the project."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

from reference import keep

PAGES = {"CHANGELOG.md": "changes.md", "CONTRIBUTING.md": "develop/contributing.md"}
LINK = re.compile(r"\]\((?:\.\./)?docs/")
# Where links of a checkout lead on the site
PLACES = {"](../../notebooks/": "](../notebooks/", "](../../tests)": "](tests.md)"}


def copy(app: Sphinx, config: Config) -> None:
    docs = Path(app.srcdir)
    pages = {docs.parent / source: docs / target for source, target in PAGES.items()}
    pages |= {notebook: docs / "notebooks" / notebook.name for notebook in (docs.parent / "notebooks").glob("*.py")}
    for source, target in pages.items():
        here = "" if target.parent == docs else "../"
        keep(target, LINK.sub(f"]({here}", source.read_text(encoding="utf-8")))


def lead(app: Sphinx, page: str, text: list[str]) -> None:
    for there, here in PLACES.items():
        text[0] = text[0].replace(there, here)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", copy)
    app.connect("source-read", lead)
    return {"parallel_read_safe": True}
