"""Options of a command from the arguments of a function, and values of the arguments from what was typed.

Arguments and docstrings are read from the file of the function, which is not imported.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.markup import escape

from meanfield import InputError

REQUIRED = object()
SHORT = {"n_agents": ["-n"]}
DEFAULTS = {"runs": 1000, "seed": 0}  # where the function has none
MOST_NUMBERS = 10**6
# Records of numbers; single ones may be given
RECORDS = {"Mechanism1": "theory.flag_game.mechanism1:APPENDIX_E"}


class Argument(NamedTuple):
    """`annotation` is as it is written; `default` is None where it is not a literal."""

    name: str
    annotation: str
    default: object
    text: str
    by_name: bool = True


class Signature(NamedTuple):
    summary: str
    arguments: dict[str, Argument]


class _Kind(NamedTuple):
    """The options of an annotation: the type that typer reads, its conversion, and a name for the value."""

    typed: Any
    read: Callable[[str, Any], object] = lambda name, given: given
    metavar: str | None = None


def parameter(argument: Argument, text: str) -> inspect.Parameter:
    """The parameter for typer: an option with the function's default, or a required value."""
    kind, name = _kind(argument), argument.name
    own = DEFAULTS.get(name) if argument.default is REQUIRED else None
    required = argument.default is REQUIRED and own is None
    shown = argument.default if own is None else own
    note = "" if shown in (REQUIRED, None) or shown is False else f" [dim]\\[default: {shown}][/dim]"
    settings: dict[str, Any] = {"help": escape(text) + note, "show_default": False}
    if required and not argument.by_name:
        ask = typer.Argument(metavar=name.upper(), **settings)
    else:
        names = [f"--{name.replace('_', '-')}", *SHORT.get(name, ())]
        ask = typer.Option(*names, metavar=kind.metavar, **settings)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else own,
        annotation=Annotated[kind.typed if required else kind.typed | None, ask],
    )


def value(argument: Argument, given: Any) -> object:
    """The value for the function; InputError if the text can't be converted."""
    return _kind(argument).read(argument.name, given)


def _kind(argument: Argument) -> _Kind:
    return next(kind for pattern, kind in KINDS if re.search(pattern, argument.annotation))


def split(given: Sequence[str]) -> list[str]:
    """Values of an option that may be given several times, or once with commas."""
    return [part.strip() for text in given for part in text.split(",")]


def _number(name: str, text: str) -> int | float:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    raise InputError(f"{name} = {text!r}: expected numbers, as in 24,100,400 or 0:60:0.5 for first:last:step")


def numbers(name: str, given: Sequence[str]) -> list[int | float]:
    """Numbers in texts with commas, or first:last:step."""
    found = []
    for part in split(given):
        first, *rest = [_number(name, text) for text in part.split(":")]
        found += _steps(name, part, first, *rest) if len(rest) == 2 else [_number(name, part)]
    return found


def _steps(name: str, text: str, first: int | float, last: int | float, step: int | float) -> list[int | float]:
    count = (last - first) / step if step else math.nan
    if not 0 <= count < MOST_NUMBERS:
        raise InputError(f"{name} = {text!r}: expected first:last:step with 1 to {MOST_NUMBERS} steps")
    steps = [first + i * step for i in range(math.floor(count + 1e-9) + 1)]
    return [*steps[:-1], last] if math.isclose(count, round(count)) else steps


def _floats(name: str, given: Sequence[str]) -> list[float]:
    return [float(number) for number in numbers(name, given)]


def _array(name: str, given: Sequence[str]) -> object:
    import numpy as np

    return np.array(_floats(name, given))


def _pairs(name: str, given: Sequence[str], example: str) -> dict[str, int | float]:
    found = {}
    for part in split(given):
        key, equals, number = part.rpartition("=")
        if not equals:
            raise InputError(f"{name} = {part!r}: expected names and numbers, as in {example}")
        if key in found:
            raise InputError(f"{name} has {key} twice")
        found[key] = _number(name, number)
    return found


def _of_words(name: str, given: Sequence[str]) -> dict[str, int | float]:
    return _pairs(name, given, "his=0.1")


def _record(kind: str, name: str, given: Sequence[str]) -> object:
    module, _, of = RECORDS[kind].partition(":")
    prototype = getattr(import_module(module), of)
    types = {field.name: field.type for field in fields(prototype)}
    changes = _pairs(name, given, f"{next(iter(types))}=1")
    if unknown := changes.keys() - types.keys():
        raise InputError(f"{name} has {min(unknown)!r}: expected some of {', '.join(types)}")
    return replace(prototype, **{key: float(n) if types[key] == "float" else n for key, n in changes.items()})


def _dataset(name: str, path: Path) -> object:
    import meanfield

    return meanfield.load(path)


KINDS = [
    ("^bool", _Kind(bool)),
    ("^str", _Kind(str)),
    ("^Mapping", _Kind(list[str], _of_words, "WORD=NUMBER,…")),
    *((name, _Kind(list[str], partial(_record, name), "NAME=NUMBER,…")) for name in RECORDS),
    (r"^Sequence\[str", _Kind(list[str], lambda name, given: split(given), "NAME,…")),
    (r"(Sequence|Iterable)\[int", _Kind(list[str], numbers, "NUMBER,…")),
    ("^int", _Kind(int)),
    ("ndarray", _Kind(list[str], _array, "NUMBER,…")),
    ("Sequence", _Kind(list[str], _floats, "NUMBER,…")),
    ("^float", _Kind(float)),
    ("Dataset", _Kind(Path, _dataset)),
    ("", _Kind(str)),
]


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
        found |= dict.fromkeys(names.split(", "), " ".join(inspect.cleandoc(text).split()))
    return found
