"""Names in docstrings become links where the reference has such a name, and stay code elsewhere."""

from __future__ import annotations

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.roles import XRefRole


class Name(XRefRole):
    """The role of text between single backticks, which need not be a name."""

    def process_link(self, env: BuildEnvironment, refnode: nodes.Element, explicit: bool, title: str, target: str):
        refnode["optional"] = True
        refnode["reftype"], refnode["refdomain"] = "obj", "py"
        refnode["py:module"] = env.ref_context.get("py:module")
        refnode["py:class"] = env.ref_context.get("py:class")
        return title, target


def stay_code(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element) -> nodes.Element | None:
    return content if node.get("optional") else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_role("name", Name())
    app.connect("missing-reference", stay_code)
    return {"parallel_read_safe": True}
