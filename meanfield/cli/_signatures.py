"""Arguments of a function and their docstrings, read from its file without importing it."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib.util import find_spec
from inspect import cleandoc
from pathlib import Path
from typing import NamedTuple

REQUIRED = object()


class Argument(NamedTuple):
    """`annotation` is as it is written; `default` is None where it is no literal."""

    name: str
    annotation: str
    default: object
    text: str
    by_name: bool = True


class Signature(NamedTuple):
    summary: str
    arguments: dict[str, Argument]


@cache
def read_signature(module: str, function: str) -> Signature:
    """The first paragraph of the docstring and the named arguments, the first one first."""
    (node,) = (n for n in _parsed(module).body if isinstance(n, ast.FunctionDef) and n.name == function)
    doc = ast.get_docstring(node) or ""
    texts, given = _described(doc), node.args
    positional = given.posonlyargs + given.args
    defaults = [None] * (len(positional) - len(given.defaults)) + given.defaults + given.kw_defaults
    arguments = {}
    for arg, default in zip(positional + given.kwonlyargs, defaults, strict=True):
        name, by_name = arg.arg, arg not in positional
        annotation = "" if arg.annotation is None else ast.unparse(arg.annotation)
        arguments[name] = Argument(name, annotation, _value(default), texts.get(name, ""), by_name)
    return Signature(" ".join(doc.partition("\n\n")[0].split()), arguments)


@cache
def _parsed(module: str) -> ast.Module:
    package, *inner = module.split(".")
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None
    return ast.parse(Path(spec.origin).parent.joinpath(*inner).with_suffix(".py").read_bytes())


def _value(default: ast.expr | None) -> object:
    if default is None:
        return REQUIRED
    try:
        return ast.literal_eval(default)
    except ValueError:
        return None


def _described(doc: str) -> dict[str, str]:
    """The section Parameters as a mapping of names to texts; several names may share a text."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", doc, re.M | re.S)
    entries = re.split(r"^(?=\S)", section[1], flags=re.M)[1:] if section else []
    found = {}
    for entry in entries:
        names, _, text = entry.partition("\n")
        found |= dict.fromkeys(names.split(", "), " ".join(cleandoc(text).split()))
    return found
