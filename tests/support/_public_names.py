"""The public packages and what they give out."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any

ROOMS = ("meanfield", "policy_extraction", "theory", "validation")
NOT_FOR_USERS = {"meanfield.cli", "meanfield.toolbox"}


def doors(name: str) -> Iterator[str]:
    """The public packages in this one, itself first, and the modules that it names."""
    package = import_module(name)
    yield name
    for found in pkgutil.iter_modules(getattr(package, "__path__", ())):
        inner = f"{name}.{found.name}"
        is_door = found.ispkg or found.name in getattr(package, "__all__", ())
        if is_door and not found.name.startswith("_") and inner not in NOT_FOR_USERS:
            yield from doors(inner)


DOORS = [door for room in ROOMS for door in doors(room)]


def things(door: str) -> Iterator[tuple[str, Any]]:
    """The functions and classes of this project at a door, in the order of their names."""
    module = import_module(door)
    listed = getattr(module, "__all__", None)
    owners = ROOMS if listed else (door,)  # without a list a door also has the names that it uses
    for name in sorted(listed or dir(module)):
        thing = getattr(module, name)
        if not name.startswith("_") and callable(thing) and str(getattr(thing, "__module__", "")).startswith(owners):
            yield name, thing
