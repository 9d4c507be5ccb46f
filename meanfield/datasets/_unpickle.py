"""Plain data from pickles, without running any code that they name."""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any

from meanfield.toolbox._errors import InputError, reason

FORMATS = {"f8": "<d", "i8": "<q"}
LITTLE_ENDIAN = (3, "<", None, None, None, -1, -1, 0)  # the state of a numpy.dtype of these numbers


class _Dtype:
    """Stands in for numpy.dtype, with which a pickle can make numpy take bytes for pointers."""

    def __init__(self, code: str, align: bool, copy: bool) -> None:
        if code not in FORMATS:
            raise ValueError(f"it has numbers of the type {code!r:.20}: expected {' or '.join(FORMATS)}")
        self.format = FORMATS[code]

    def __setstate__(self, state: object) -> None:
        if state != LITTLE_ENDIAN:
            raise ValueError("it changes the state of a numpy.dtype")


def _scalar(dtype: _Dtype, content: bytes) -> float | int:
    return struct.unpack(dtype.format, content)[0]


# numpy moved its core between the releases that wrote the published files and ours.
ADMITTED = {
    "numpy.dtype": _Dtype,
    "numpy.core.multiarray.scalar": _scalar,
    "numpy._core.multiarray.scalar": _scalar,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> Any:
        named = f"{module_name}.{global_name}"
        if named not in ADMITTED:
            raise ValueError(f"it asks for {named:.100}: expected numpy scalars only, so it is not opened")
        return ADMITTED[named]


def unpickle(data: bytes, name: str) -> Any:
    """The numbers, strings and containers in a pickle; numpy's float64 and int64 scalars become numbers.

    InputError if it asks for anything else, or is damaged. A crafted pickle runs no code, but may take much memory or
    end the process.
    """
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except Exception as error:  # damaged ones raise almost anything
        raise InputError(f"{name}: expected a pickle of plain data, and it can't be read ({reason(error)})") from None


def unpickle_numbers(data: bytes, name: str) -> dict[str, float]:
    """The dict of numbers in a pickle; InputError if it holds anything else."""
    content = unpickle(data, name)
    if not isinstance(content, dict) or not all(
        isinstance(key, str) and type(value) is float for key, value in content.items()
    ):
        raise InputError(f"{name}: expected a dict from memories to probabilities")
    return content
