"""Docstrings describe results in sentences; numpydoc expects a type first, and the annotation has it."""

from __future__ import annotations

import inspect
import re

from sphinx.application import Sphinx

PATH = re.compile(r"\b(?:\w+\.)+(?=\w)")  # the modules before a name


def indent(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Puts the annotation above the sentences of the section `Returns`, and indents them."""
    if "Returns" not in lines or not callable(thing):
        return
    begin = lines.index("Returns") + 2
    underlines = [i for i, line in enumerate(lines) if i > begin and line and not line.strip("-")]
    end = underlines[0] - 1 if underlines else len(lines)
    kind = PATH.sub("", str(inspect.signature(thing).return_annotation)).replace("*", r"\*")
    lines[begin:end] = [kind, *("    " + line if line else "" for line in lines[begin:end])]


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", indent, priority=400)  # numpydoc has 500
    return {"parallel_read_safe": True}
