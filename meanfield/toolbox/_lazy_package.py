"""Packages whose names are imported on first use."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def lazy_package(
    package: str, file: str, former: tuple[str, ...] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, for the names that its `file` imports for type checkers.

    A name is written once, as ``from package._module import name as name`` under ``if TYPE_CHECKING``, for type
    checkers, editors and this function. ``from package import inner as inner`` is an inner package; ``from
    package.inner import f as g`` gives f another name in the outer one. Names of a `former` release are in
    ``package._former``, and are not listed. Source: PEP 562.
    """
    blocks = [node for node in ast.parse(Path(file).read_bytes()).body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    origins = {alias.asname or alias.name: (str(node.module), alias.name) for node in imports for alias in node.names}

    def find(name: str) -> object:
        if name in former:
            return getattr(import_module(f"{package}._former"), name)
        if name not in origins:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        module, attribute = origins[name]
        inner = module == package
        value = import_module(f"{package}.{attribute}") if inner else getattr(import_module(module), attribute)
        setattr(sys.modules[package], name, value)  # found without this function from now on
        return value

    def listed() -> list[str]:
        own = vars(sys.modules[package])
        if not _for_help():
            return sorted({*origins, *(name for name in own if name.startswith("__"))})
        # Help shows the names in the docstring already, without an import of all, and needs no functions of the package
        names = {name for name in origins if f"`{name}`" not in str(own["__doc__"])}
        return sorted({*names, *(name for name in own if name.startswith("__") and not callable(own[name]))})

    return find, listed, sorted(origins)


def _for_help() -> bool:
    """Whether `help` asks for the names of a package, to import and describe each of them."""
    frame = sys._getframe(2)
    for _ in range(4):
        if frame is None or frame.f_globals.get("__name__") == "pydoc":
            return frame is not None
        frame = frame.f_back
    return False
