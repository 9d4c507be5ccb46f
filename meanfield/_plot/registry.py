"""The views of each kind of result: which function draws a panel, which dims become panels, and what a view reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield._plot import views as modules
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._labels import has_names

Draw = Callable[..., None]
FEWEST_WORDS = 2
RISING = ("n_agents", "round", "time", "interactions", "consensus_time")


class Reads(NamedTuple):
    """A variable that a view reads, drawn along `dims`.

    Dims in `empty` may have no entry, for dims in `parts` some entries are enough, and the entries in `labels` have to
    be there, and are all that is drawn; with `others` it may have more dims. A result may lack it if `optional`.
    """

    dims: tuple[str, ...]
    empty: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()
    labels: Mapping[str, tuple[str, ...]] = {}
    others: bool = False
    optional: bool = False


def signature(text: str) -> dict[str, Reads]:
    """The variables of a signature, such as ``"n_agents! bound=low,high: interval; : kappa correction?"``.

    Before a colon stand dims, behind it what is read along them. Three dots stand for any other dims, a star marks a
    dim that may have no entry, a plus a dim for which some entries are enough, an exclamation mark one whose labels
    are drawn too, ``bound=low,high`` one that must have these, and a question mark a variable that may be missing.
    """
    found: dict[str, Reads] = {}
    for group in filter(None, text.split(";")):
        listed, names = (part.split() for part in group.split(":"))
        labels = {dim: tuple(known.split(",")) for dim, _, known in (one.partition("=") for one in listed) if known}
        dims = {one.partition("=")[0].rstrip("*+!"): one for one in listed if one != "..."}
        empty, parts, drawn = (frozenset(dim for dim, one in dims.items() if mark in one) for mark in "*+!")
        for dim in sorted(drawn | set(labels)):
            found[dim] = Reads((dim,), empty & {dim}, parts & {dim}, {dim: labels[dim]} if dim in labels else {})
        for name in names:
            found[name.rstrip("?")] = Reads(tuple(dims), empty, parts, labels, "..." in listed, name.endswith("?"))
    return found


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
    kinds: str,
    view: str,
    reads: str,
    *,
    by: tuple[str, ...] = ("model", "pair"),
    needs: Mapping[str, str] | None = None,
) -> Callable[[Draw], Draw]:
    """Decorator: the function draws this view of results of these kinds, separated by spaces.

    The default of a result is the first view of its kind whose needs it meets, in the order of the modules. `reads` is
    what it draws, in the form of `signature`: variables come with these dims, in this order.
    """

    def register(draw: Draw) -> Draw:
        for kind in kinds.split():
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


def readable(result: xr.Dataset, reads: Mapping[str, Reads], by: tuple[str, ...], view: str) -> xr.Dataset:
    """The result with every variable that the view reads along the dims of its signature, in their order.

    A dim from which one entry was selected has one entry. Sizes and times rise, and dims with labels in the signature
    have these. InputError that names all that is missing.
    """
    named = {dim for one in reads.values() for dim in one.dims}
    for dim in sorted(named - set(result.dims)):
        if dim in result.coords:
            result = result.assign_coords({dim: (dim, np.atleast_1d(result[dim].values), result[dim].attrs)})
    for name, one in reads.items():
        if name in result.variables:
            result = _along(result, name, one.dims)
    faults = {fault: text for name, one in reads.items() for fault, text in _faults(result, name, one, by)}
    words = reads.get("word")
    if words and words.dims and _words(result):
        result, whole = _numbered_words(result)
        if not (whole or words.parts):
            faults[f"only {', '.join(_words(result))} along word"] = "all words"
    if faults:
        expected = ", ".join(dict.fromkeys(faults.values()))
        raise InputError(f"result has {', '.join(faults)}: expected {expected} for view = {view!r}")
    result = result.sortby([dim for dim in RISING if dim in named and dim in result.indexes])
    labels = {dim: list(known) for one in reads.values() for dim, known in one.labels.items() if dim in result.dims}
    return result.sel(labels)


def _along(result: xr.Dataset, name: str, dims: tuple[str, ...]) -> xr.Dataset:
    """The variable with these dims first, also with those that it lost, which have one entry."""
    lost = [dim for dim in dims if dim not in result[name].dims and result.sizes.get(dim, 1) == 1]
    if not lost and result[name].dims[: len(dims)] == dims:
        return result
    variable = result.variables[name].set_dims((*lost, *result[name].dims)).to_base_variable()
    variable = variable.transpose(*dims, ..., missing_dims="ignore")
    return result.assign_coords({name: variable}) if name in result.coords else result.assign({name: variable})


def _faults(result: xr.Dataset, name: str, reads: Reads, by: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Reasons that keep a variable from being drawn, each with what was expected."""
    expected = f"{name}({', '.join(reads.dims)})" if reads.dims else name
    if name not in result.variables and not (name == "word" and reads.dims and _words(result)):
        if not reads.optional or name in result.dims:
            yield f"no {name}", expected
        return
    dims = result[name].dims
    for dim in reads.dims:
        if dim not in dims:
            yield f"{name} without {dim}", expected
        elif not result.sizes[dim] and dim not in reads.empty:
            yield f"nothing along {dim}", expected
        elif dim not in result.coords:
            continue
        elif missing := set(reads.labels.get(dim, ())) - set(map(str, result[dim].values.tolist())):
            yield f"no {', '.join(sorted(missing))} along {dim}", expected
    for dim in dims:
        if dim not in (*reads.dims, *by):
            if not reads.others:
                yield f"{name} along {dim}", f"{expected} of one {dim}"
            elif not result.sizes[dim]:
                yield f"nothing along {dim}", expected
    if name in result.coords and result[name].dtype.kind == "f" and result[name].size and result[name].isnull().all():
        yield f"only NaN in {name}", expected


def _words(result: xr.Dataset) -> list[str]:
    """The words that name the entries along `word`, of all pairs."""
    for name in ("word_label", "word"):
        if name in result.coords and result[name].dtype.kind in "UOT":
            return sorted(set(map(str, result[name].values.ravel().tolist())))
    return []


def _numbered_words(result: xr.Dataset) -> tuple[xr.Dataset, bool]:
    """The result with words in the order of their numbers, also where some were selected; and whether all are there."""
    if "word" not in result.dims:
        return result, False
    whole = result.sizes["word"] >= FEWEST_WORDS
    if not has_names(result) or "word_number" not in result.coords:
        return result, whole
    numbers = result["word_number"]
    given = set(np.atleast_1d(numbers.values).tolist())
    if numbers.dims and (given == set(range(numbers.size)) or len(given) < numbers.size):
        return result, whole
    ordered = result.sortby(numbers) if numbers.dims else result
    return ordered.drop_vars(["word_number", "word_label"], errors="ignore"), False
