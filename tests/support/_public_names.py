"""The public packages and what they give out."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any

ROOTS = ("meanfield", "policy_extraction", "theory", "validation")
NOT_FOR_USERS = {"meanfield.cli", "meanfield.toolbox"}


def packages(name: str) -> Iterator[str]:
    """The public packages in this one, itself first, and the modules that it names."""
    package = import_module(name)
    yield name
    for found in pkgutil.iter_modules(getattr(package, "__path__", ())):
        inner = f"{name}.{found.name}"
        is_public = found.ispkg or found.name in getattr(package, "__all__", ())
        if is_public and not found.name.startswith("_") and inner not in NOT_FOR_USERS:
            yield from packages(inner)


PUBLIC = [package for root in ROOTS for package in packages(root)]


def things(package: str) -> Iterator[tuple[str, Any]]:
    """This project's functions and classes that a package gives out, in the order of their names."""
    module = import_module(package)
    listed = getattr(module, "__all__", None)
    owners = ROOTS if listed else (package,)  # without a list a package also has the names that it uses
    for name in sorted(listed or dir(module)):
        thing = getattr(module, name)
        if not name.startswith("_") and callable(thing) and str(getattr(thing, "__module__", "")).startswith(owners):
            yield name, thing
