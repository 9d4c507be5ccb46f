"""Checks of what the methods of a class are given, by the names of their arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

from meanfield.toolbox._arguments import shown
from meanfield.toolbox._errors import InputError

Class = TypeVar("Class", bound=type)


def checked_methods(needs: Mapping[str, str], listed: Collection[str] = ()) -> Callable[[Class], Class]:
    """Decorator: the public methods refuse arguments that lack an attribute.

    `needs` has the attributes of an argument by its name, with blanks between them; of those `listed` it is a sequence
    whose items have them.
    """

    def decorate(one: Class) -> Class:
        for name, method in list(vars(one).items()):
            if inspect.isfunction(method) and not name.startswith("_"):
                setattr(one, name, _checked(method, needs, listed))
        return one

    return decorate


def _checked(method: Callable[..., Any], needs: Mapping[str, str], listed: Collection[str]) -> Callable[..., Any]:
    names = list(inspect.signature(method).parameters)
    wanted = [(names.index(name), name, needs[name].split(), name in listed) for name in names if name in needs]

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        for place, name, attributes, several in wanted:
            given = args[place : place + 1] or ([kwargs[name]] if name in kwargs else [])
            for value in given:
                items = value if several and isinstance(value, Sequence) and not isinstance(value, str) else [value]
                if not all(hasattr(item, attribute) for item in items for attribute in attributes):
                    each = "a list of objects" if several else "an object"
                    raise InputError(f"{name} = {shown(value)}: expected {each} with {', '.join(attributes)}")
        return method(*args, **kwargs)

    return call if wanted else method
