"""Pickles of numbers, read without running code."""

from __future__ import annotations

import io
import pickle
from typing import Any

from meanfield._errors import InputError

# All that a dict of numpy.float64 needs; numpy moved its core between the releases that wrote these files and ours.
ADMITTED = {
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "scalar"),
}


class NumbersUnpickler(pickle.Unpickler):
    """An unpickler that admits numpy scalars and dtypes and nothing else: pickles are code."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ADMITTED:
            raise InputError(f"the pickle asks for {module}.{name}: expected numpy scalars only, so it is not opened")
        return super().find_class(module, name)


def unpickle_numbers(data: bytes, name: str) -> dict[str, float]:
    """The dict of numbers in a pickle; InputError where it is anything else."""
    try:
        content = NumbersUnpickler(io.BytesIO(data)).load()
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except Exception as error:  # a broken pickle may raise almost anything
        raise InputError(f"{name}: expected a pickle of numbers, and it can't be read ({error!r})") from None
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise InputError(f"{name}: expected a dict from memories to probabilities, got {type(content).__name__}")
    return content
