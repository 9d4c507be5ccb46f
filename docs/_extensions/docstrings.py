"""Names in docstrings become links, and sections `Returns` have the types of their annotations."""

from __future__ import annotations

import inspect
import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.roles import XRefRole

PATH = re.compile(r"\b(?:\w+\.)+(?=\w)")  # the modules before a name


class Name(XRefRole):
    """The role of text between single backticks, which need not be a name: then it stays code."""

    def process_link(self, env: BuildEnvironment, refnode: nodes.Element, explicit: bool, title: str, target: str):
        refnode["optional"] = True
        refnode["reftype"], refnode["refdomain"] = "obj", "py"
        refnode["py:module"] = env.ref_context.get("py:module")
        refnode["py:class"] = env.ref_context.get("py:class")
        return title, target


def stay_code(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element) -> nodes.Element | None:
    return content if node.get("optional") else None


def indent(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Puts the annotation, which numpydoc expects, above the sentences of the section `Returns`, and indents them."""
    if "Returns" not in lines or not callable(thing):
        return
    begin = lines.index("Returns") + 2
    underlines = [i for i, line in enumerate(lines) if i > begin and line and not line.strip("-")]
    end = underlines[0] - 1 if underlines else len(lines)
    kind = PATH.sub("", str(inspect.signature(thing).return_annotation)).replace("*", r"\*")
    lines[begin:end] = [kind, *("    " + line if line else "" for line in lines[begin:end])]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_role("name", Name())
    app.connect("missing-reference", stay_code)
    app.connect("autodoc-process-docstring", indent, priority=400)  # numpydoc has 500
    return {"parallel_read_safe": True}
