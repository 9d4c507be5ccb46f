"""The page: one HTML file with its styles, scripts, policies and licences inside.

JavaScript modules of a folder become one plain script, which a page from a file may run and hand to workers. Each
module is a function that is called once and returns what it exports:

    import { f } from "./a.js";          modules["engine/b.js"] = (() => {
    export function g() {}         →     const { f } = modules["engine/a.js"];
                                         function g() {}
                                         return { g };
                                         })();

Modules import names in braces and export functions, classes and constants where they are defined; nothing else is
understood. A module stands behind those that it imports.
"""

from __future__ import annotations

import html
import json
import posixpath
import re
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

FOLDER = files("meanfield._explore") / "page"
UPLOT_VERSION = re.compile(r"\bv(\d+\.\d+\.\d+)")
PLACE = re.compile(r"\{\{(\w+)\}\}")
IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]*)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:function|class|const) (\w+))", re.MULTILINE)
LEFT_OVER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def page_of(entries: list[dict[str, Any]]) -> str:
    """The whole page for these policies."""
    title = f"{entries[0]['name']}: meanfield explorer" if len(entries) == 1 else "meanfield explorer"
    uplot = _text("uplot/uPlot.iife.min.js")
    uplot_version = UPLOT_VERSION.search(uplot)
    parts = {
        "title": html.escape(title),
        "styles": _text("uplot/uPlot.min.css") + _text("style.css"),
        "version": html.escape(version("meanfield-llm")),
        "uplot_version": uplot_version[1] if uplot_version else "",
        "uplot_licence": html.escape(_text("uplot/LICENSE")),
        # No < in a script element, as it could end it
        "policies": json.dumps(entries, separators=(",", ":")).replace("<", "\\u003c"),
        "uplot": uplot,
        "engine": plain_script(FOLDER, "engine"),
        "view": plain_script(FOLDER, "view"),
    }
    # In one pass, so that nothing that is put in is taken for a place
    return PLACE.sub(lambda place: parts[place[1]], _text("page.html"))


def _text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def plain_script(page: Traversable, folder: str) -> str:
    """The modules of `page`/`folder` as one script; imports from other folders are taken to be there."""
    sources = {
        f"{folder}/{file.name}": file.read_text(encoding="utf-8")
        for file in (page / folder).iterdir()
        if file.name.endswith(".js")
    }
    ordered: list[str] = []

    def add(name: str) -> None:
        if name in ordered or name not in sources:
            return
        for _, path in IMPORT.findall(sources[name]):
            add(_resolved(name, path))
        ordered.append(name)

    for name in sorted(sources):
        add(name)
    parts = [_wrapped(name, sources[name]) for name in ordered]
    return "\n".join(['"use strict";', "globalThis.modules ??= {};", *parts])


def _wrapped(name: str, source: str) -> str:
    exported = EXPORT.findall(source)
    body = IMPORT.sub(lambda one: f'const {{{one[1]}}} = modules["{_resolved(name, one[2])}"];\n', source)
    body = EXPORT.sub("", body)
    if left := LEFT_OVER.search(body):
        raise ValueError(f"{name}: {left[0]!r} is no import or export in the form that page.py understands")
    return f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {", ".join(exported)} }};\n}})();'


def _resolved(name: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
