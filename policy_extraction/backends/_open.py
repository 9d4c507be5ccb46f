"""Back ends of models that are given by name, by path or as objects."""

from __future__ import annotations

import os
from typing import Any

from meanfield import InputError
from meanfield.toolbox import shown
from policy_extraction.backends._backend import Backend
from policy_extraction.backends.local._source import SMOLLM2, dtype_name, find, load
from policy_extraction.backends.local._transformers import TransformersBackend, given


def open_backend(
    model: str | os.PathLike[str] | tuple[Any, Any] | Backend = SMOLLM2,
    *,
    device_map: Any = None,
    dtype: Any = None,
    gguf_file: str | None = None,
    quantization_config: Any = None,
    memory_budget: int | None = None,
) -> Backend:
    """The back end of a model; the model is loaded when it is first asked.

    Parameters
    ----------
    model, device_map, dtype, gguf_file, quantization_config, memory_budget
        As in `extract`.

    Raises
    ------
    InputError
        If an argument is wrong, or there is no such model.

    See Also
    --------
    policy_extraction.extract : opens the back end itself

    Examples
    --------
    The model is loaded when it is first asked. A back end of your own is taken as it is.

    >>> from policy_extraction import open_backend
    >>> from policy_extraction.backends import TableBackend
    >>> from policy_extraction.prompts import Prompt
    >>> smollm2 = open_backend()  # doctest: +SKIP
    >>> smollm2.generate([Prompt("", "Name a colour.", "A colour is")], max_tokens=4, temperature=0)  # doctest: +SKIP
    [' a fundamental concept in']
    >>> table = TableBackend(lambda memory, order: {"his": 0.6, "her": 0.3}, ("his", "her"), memory_length=1)
    >>> open_backend(table) is table
    True
    """
    if isinstance(model, (str, os.PathLike)):
        source = find(model, gguf_file)
        number_format = dtype_name(dtype, device_map)
        quantization = "" if quantization_config is None else f" {quantization_config!r}"
        return TransformersBackend(
            lambda: load(source, number_format, device_map, quantization_config),
            source.name,
            f"{source.identity} {number_format}{quantization}",
            memory_budget,
        )
    options = {"device_map": device_map, "dtype": dtype, "gguf_file": gguf_file}
    for name, value in (options | {"quantization_config": quantization_config}).items():
        if value is not None:
            raise InputError(f"{name} = {value!r}: expected None for a model that is loaded already")
    if isinstance(model, tuple):
        if len(model) != 2 or not callable(model[0]) or not callable(model[1]):
            raise InputError("model: expected a name, a path, or a pair (model, tokenizer) of transformers")
        return given(*model, memory_budget)
    if not isinstance(model, Backend):
        raise InputError(f"model = {model!r}: expected a name, a path, a pair (model, tokenizer) or a Backend")
    if memory_budget is not None:
        raise InputError(
            f"memory_budget = {shown(memory_budget)}: expected None for a Backend, which has one of its own"
        )
    return model
