"""The optional libraries that run language models."""

from __future__ import annotations

import importlib.util
from importlib import import_module
from typing import Any

from meanfield import InputError

LIBRARIES = ("torch", "transformers")


def require_libraries() -> None:
    """InputError unless PyTorch and transformers are installed."""
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"a language model needs {' and '.join(missing)}, not installed here: pip install {' '.join(missing)}"
        )


def transformers(module: str = "") -> Any:
    """The library or a module of it, untyped: its types, which name all models, would double the time of pyright."""
    return import_module(f"transformers.{module}".removesuffix("."))
