"""The views of each kind of result: which function draws a panel, and which dims become panels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

import xarray as xr

from meanfield._plot import views
from meanfield.toolbox._errors import InputError

Draw = Callable[..., None]


class Reads(NamedTuple):
    """A variable that a view reads, as its signature has it.

    It is drawn along `dims`. Dims in `empty` may have no entry, for dims in `parts` some entries are enough, and the
    entries in `labels` have to be there; with `others` it may have more dims. A result may lack it if `optional`.
    """

    dims: tuple[str, ...]
    empty: frozenset[str]
    parts: frozenset[str]
    labels: Mapping[str, tuple[str, ...]]
    others: bool
    optional: bool


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


VIEWS: dict[str, dict[str, View]] = {}


def draws(
    *kinds: str,
    view: str,
    reads: str = "",
    by: tuple[str, ...] = ("model", "pair"),
    needs: Mapping[str, str] | None = None,
    first: bool = False,
) -> Callable[[Draw], Draw]:
    """Decorator: the function draws this view of these kinds of results.

    The default of a result is the first view of its kind whose needs it meets. `first` puts a view before
    other modules' views. `reads` is a signature: dims and what is read along them, as in
    ``"time word+ ...: word_share; fold*: fold_parameter; : kappa correction?"``. Three dots stand for any other dims, a
    star marks a dim that may have no entry, a plus a dim for which some entries are enough, ``bound=low,high`` a dim
    that must have these, and a question mark a variable that a result may lack.
    """

    def register(draw: Draw) -> Draw:
        for kind in kinds:
            one, others = {view: View(view, draw, by, needs or {}, _signature(reads))}, VIEWS.get(kind, {})
            VIEWS[kind] = {**one, **others} if first else {**others, **one}
        return draw

    return register


def _signature(text: str) -> dict[str, Reads]:
    found = {}
    for group in filter(None, text.split(";")):
        listed, names = (part.split() for part in group.split(":"))
        labels = {dim: tuple(known.split(",")) for dim, _, known in (one.partition("=") for one in listed) if known}
        dims = tuple(dim.partition("=")[0].rstrip("*+") for dim in listed if dim != "...")
        empty, parts = (frozenset(dim[:-1] for dim in listed if dim.endswith(mark)) for mark in "*+")
        for name in names:
            found[name.rstrip("?")] = Reads(dims, empty, parts, labels, "..." in listed, name.endswith("?"))
    return found


@cache
def _import_views() -> None:
    """Every module of views registers them when it is imported, with matplotlib, which takes half a second."""
    for module in iter_modules(views.__path__):
        import_module(f"{views.__name__}.{module.name}")


def view_of(result: object, name: str | None) -> View:
    """The view of that name, by default the first whose needs are met.

    InputError if the kind of result or the view is unknown, or the result lacks what the view needs.
    """
    if not isinstance(result, xr.Dataset):
        raise InputError(f"result is a {type(result).__name__}: expected what a function of this package returned")
    _import_views()
    kind = str(result.attrs.get("kind", ""))
    if kind not in VIEWS:
        nearest = ", ".join(get_close_matches(kind, VIEWS, cutoff=0))
        raise InputError(
            f"result has attrs['kind'] = {kind!r}: expected one that plot draws, such as {nearest}; "
            "docs/how_to/plots.md lists them all"
        )
    known = VIEWS[kind]
    if name is not None and name not in list(known):
        raise InputError(f"view = {name!r}: expected {' or '.join(known)} for the kind {kind}")
    possible = [view for view, drawing in known.items() if all(needed in result for needed in drawing.needs)]
    chosen = name or next(iter(possible or known))
    for variable, option in known[chosen].needs.items():
        if variable not in result:
            raise InputError(f"view = {chosen!r}: result has no {variable}, expected one made with {option}")
    return known[chosen]
