"""JavaScript modules of a folder as one plain script, which a page from a file may run and hand to workers.

Each module becomes a function that is called once and returns what it exports:

    import { f } from "./a.js";          modules["engine/b.js"] = (() => {
    export function g() {}         →     const { f } = modules["engine/a.js"];
                                         function g() {}
                                         return { g };
                                         })();

Modules import names in braces and export functions, classes and constants where they are defined; nothing else is
understood. A module stands behind those that it imports.
"""

from __future__ import annotations

import posixpath
import re
from importlib.resources.abc import Traversable

IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]*)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:function|class|const) (\w+))", re.MULTILINE)
LEFT_OVER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


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
    body = IMPORT.sub(lambda one: f"const {{{one[1]}}} = modules[{_quoted(_resolved(name, one[2]))}];\n", source)
    body = EXPORT.sub("", body)
    if left := LEFT_OVER.search(body):
        raise ValueError(f"{name}: {left[0]!r} is no import or export in the form that scripts.py understands")
    return f"modules[{_quoted(name)}] = (() => {{\n{body}\nreturn {{ {', '.join(exported)} }};\n}})();"


def _resolved(name: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


def _quoted(text: str) -> str:
    return f'"{text}"'
