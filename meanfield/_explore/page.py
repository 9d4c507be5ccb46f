"""The page: one HTML file with its styles, scripts, policies and licences inside."""

from __future__ import annotations

import html
import json
import re
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from meanfield._explore.scripts import plain_script

FOLDER = files("meanfield._explore") / "page"
UPLOT_VERSION = re.compile(r"\bv(\d+\.\d+\.\d+)")
PLACE = re.compile(r"\{\{(\w+)\}\}")


def page_of(entries: list[dict[str, Any]]) -> str:
    """The whole page for these policies."""
    engine, view = plain_script(FOLDER, "engine"), plain_script(FOLDER, "view")
    uplot = _text("uplot/uPlot.iife.min.js")
    parts = {
        "title": html.escape(_title(entries)),
        "styles": _text("uplot/uPlot.min.css") + _text("style.css"),
        "version": html.escape(version("meanfield-llm")),
        "uplot_version": _uplot_version(),
        "uplot_licence": html.escape(_text("uplot/LICENSE")),
        "policies": _json(entries),
        "uplot": uplot,
        "engine": engine,
        "view": view,
    }
    # In one pass, so that nothing that is put in is taken for a place
    return PLACE.sub(lambda place: parts[place[1]], _text("page.html"))


def _text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _title(entries: list[dict[str, Any]]) -> str:
    return f"{entries[0]['name']}: meanfield explorer" if len(entries) == 1 else "meanfield explorer"


def _uplot_version() -> str:
    found = UPLOT_VERSION.search(_text("uplot/uPlot.iife.min.js"))
    return found[1] if found else ""


def _json(value: Any) -> str:
    """JSON that can stand inside a script element: no < can end it."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
