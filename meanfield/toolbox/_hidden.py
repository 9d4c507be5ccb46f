"""The packages of this project have common names: a user's own folder may hide them."""

from __future__ import annotations

import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

HOME = Path(__file__).parents[2]


def hidden_packages(names: tuple[str, ...]) -> list[str]:
    """Sentences on packages that Python imports under these names instead of this project's."""
    found = []
    for name in names:
        imported = sys.modules.get(name)
        origin = getattr(imported, "__file__", None) if imported else getattr(find_spec(name), "origin", None)
        if origin and Path(origin).resolve() != (HOME / name / "__init__.py").resolve():
            found.append(f"{origin} hides the package {name!r} of meanfield")
    return found


def warn_of_hidden_packages(*names: str) -> None:
    """Warns, since who needs only other packages can go on."""
    for sentence in hidden_packages(names):
        warnings.warn(f"{sentence}: rename it, or start Python in another folder", stacklevel=3)


def require_packages(*names: str) -> None:
    """ImportError where a package that is needed is hidden."""
    for sentence in hidden_packages(names):
        raise ImportError(f"{sentence}: rename it, or start Python in another folder")
