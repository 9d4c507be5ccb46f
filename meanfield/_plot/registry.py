"""The views of each kind of result: which function draws a panel, and which dims become panels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

import xarray as xr

from meanfield._plot import views as modules
from meanfield._plot.reading import Reads, signature
from meanfield.toolbox._errors import InputError

Draw = Callable[..., None]


class View(NamedTuple):
    """A way to draw a result.

    `draw(axes, part, colours, **style)` draws the part of the result for one panel. `colours` has a colour for each
    word; `style` goes to the artists that matter most. `by` are the dims along which a result is cut into panels.
    `needs` are variables that not every result of the kind has, each with the option that records it. `reads` are all
    variables and coordinates, within a panel.
    """

    name: str
    draw: Draw
    by: tuple[str, ...]
    needs: Mapping[str, str]
    reads: Mapping[str, Reads]


_VIEWS: dict[str, dict[str, View]] = {}


def draws(
    *kinds: str, view: str, reads: str, by: tuple[str, ...] = ("model", "pair"), needs: Mapping[str, str] | None = None
) -> Callable[[Draw], Draw]:
    """Decorator: the function draws this view of these kinds of results.

    The default of a result is the first view of its kind whose needs it meets, in the order of the modules. `reads` is
    what it draws, in the form of `signature`: variables come with these dims, in this order.
    """

    def register(draw: Draw) -> Draw:
        for kind in kinds:
            _VIEWS.setdefault(kind, {})[view] = View(view, draw, by, needs or {}, signature(reads))
        return draw

    return register


@cache
def views() -> dict[str, dict[str, View]]:
    """All views, by kind and name; their modules register them when they are imported, with matplotlib."""
    for module in iter_modules(modules.__path__):
        import_module(f"{modules.__name__}.{module.name}")
    return _VIEWS


def view_of(result: object, name: str | None) -> View:
    """The view of that name, by default the first whose needs are met.

    InputError if the kind of result or the view is unknown, or the result lacks what the view needs.
    """
    if not isinstance(result, xr.Dataset):
        raise InputError(f"result is a {type(result).__name__}: expected what a function of this package returned")
    kind = str(result.attrs.get("kind", ""))
    if kind not in views():
        nearest = ", ".join(get_close_matches(kind, views(), cutoff=0))
        raise InputError(
            f"result has attrs['kind'] = {kind!r}: expected one that plot draws, such as {nearest}; "
            "docs/how_to/plots.md lists them all"
        )
    known = views()[kind]
    if name is not None and name not in list(known):
        raise InputError(f"view = {name!r}: expected {' or '.join(known)} for the kind {kind}")
    possible = [view for view, drawing in known.items() if all(needed in result for needed in drawing.needs)]
    chosen = known[name or next(iter(possible or known))]
    for variable, option in chosen.needs.items():
        if variable not in result:
            raise InputError(f"view = {chosen.name!r}: result has no {variable}, expected one made with {option}")
    return chosen
