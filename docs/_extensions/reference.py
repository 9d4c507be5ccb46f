"""Writes the reference: a page for each public package, which lists its names, each with a page of its own."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType

from sphinx.application import Sphinx
from sphinx.config import Config

PACKAGES = ("meanfield", "policy_extraction", "theory", "validation")
NOT_FOR_USERS = {
    *("meanfield.cli", "meanfield.toolbox", "policy_extraction.rebuild_gallery"),
    *("theory.pairs", "theory.streams", "theory.toolbox"),
}
WHAT_IT_IS = {
    "meanfield": "The engine: policies, rate equations, fixed points, spectra, tables, finite groups",
    "policy_extraction": "From a language model to a policy",
    "theory": "The papers' own models",
    "validation": "Exact simulation, comparison with theory, real populations",
}


def packages(name: str) -> list[str]:
    """The public packages and modules in this one, itself first."""
    folders = getattr(importlib.import_module(name), "__path__", ())
    inner = [f"{name}.{found.name}" for found in pkgutil.iter_modules(folders)]
    inner = [one for one in inner if not one.rpartition(".")[2].startswith("_") and one not in NOT_FOR_USERS]
    return [name, *(package for one in inner for package in packages(one))]


def public_names(package: ModuleType) -> list[str]:
    """Functions, classes and constants of a package, without the packages in it."""
    names = [name for name in getattr(package, "__all__", dir(package)) if not name.startswith("_")]
    if not hasattr(package, "__path__"):  # a module: its imports are not its own
        return sorted(name for name in names if getattr(getattr(package, name), "__module__", "") == package.__name__)
    return sorted(name for name in names if is_ours(getattr(package, name)) and not is_shown_above(package, name))


def is_ours(thing: object) -> bool:
    """Whether it was made here, or is a number: packages without `__all__` also hold what they import."""
    return not inspect.ismodule(thing) and getattr(thing, "__module__", PACKAGES[0]).partition(".")[0] in PACKAGES


def is_shown_above(package: ModuleType, name: str) -> bool:
    """Whether an outer package has this class too: Sphinx describes each class once."""
    thing, outer = getattr(package, name), package.__name__
    while inspect.isclass(thing) and (outer := outer.rpartition(".")[0]):
        if getattr(importlib.import_module(outer), name, None) is thing:
            return True
    return False


def page(name: str) -> str:
    names = public_names(importlib.import_module(name))
    listed = "".join(f"   {one}\n" for one in names)
    table = f".. currentmodule:: {name}\n\n.. autosummary::\n   :toctree: names\n\n{listed}\n" if names else ""
    return f"{name}\n{'=' * len(name)}\n\n.. automodule:: {name}\n   :no-members:\n\n{table}"


def write(app: Sphinx, config: Config) -> None:
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    pages = set()
    lines = ["# Reference", "", "Every public name, by package. Names in `code` link to their pages.", ""]
    for outermost in PACKAGES:
        found = [package for package in packages(outermost) if public_names(importlib.import_module(package))]
        for package in found:
            keep(folder / f"{package}.rst", page(package))
            pages |= {f"{package}.{name}.rst" for name in public_names(importlib.import_module(package))}
        entries = "\n".join(found)
        lines += [f"## {WHAT_IT_IS[outermost]}", "", f"```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```", ""]
    lines += ["## Bibliography", "", "```{bibliography}\n:all:\n```", ""]
    keep(folder / "index.md", "\n".join(lines))
    for left_over in folder.glob("names/*.rst"):
        if left_over.name not in pages:
            left_over.unlink()


def keep(path: Path, text: str) -> None:
    """Writes changed pages only, so that unchanged ones are not built again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", write)
    return {"parallel_read_safe": True}
