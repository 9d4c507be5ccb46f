"""Keywords of former releases, which warn and go with the next."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from meanfield.toolbox._errors import InputError

P = ParamSpec("P")
R = TypeVar("R")


def renamed(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for functions whose keywords had other names: `@renamed(old="new")`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            given: dict[str, Any] = dict(kwargs)
            for old in names.keys() & given:
                new = names[old]
                if new in given:
                    raise InputError(f"{old} and {new} are both given: expected {new} only, its new name")
                told = f"{old} of {function.__name__} goes with the next release: use {new}"
                warnings.warn(told, DeprecationWarning, stacklevel=2)
                given[new] = given.pop(old)
            return function(*args, **given)  # type: ignore[arg-type]

        return called

    return decorate
