"""Figures and tables of the papers, each registered by the number under which the paper prints it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import NamedTuple

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

import paper_figs
from meanfield import InputError
from meanfield.toolbox import in_braces, model_name
from paper_figs._study import Study
from paper_figs._style import styled

Draw = Callable[[xr.Dataset], Figure | pd.DataFrame]


class Item(NamedTuple):
    """A figure or table of a paper: where its numbers come from, and how they are drawn.

    `draw` returns a Figure or a pandas DataFrame. An item that can't be computed has a `reason` and no functions.
    """

    paper: str
    number: str
    title: str
    shows: str  # what the paper shows, in one sentence
    numbers: Callable[[Study], xr.Dataset] | None = None
    draw: Draw | None = None
    differs: str = ""  # differences from the paper
    reason: str = ""

    @property
    def name(self) -> str:
        """The name of its files."""
        kind, _, number = self.number.rpartition(" ")
        return f"{kind.lower().rstrip('.') or 'figure'}_{number}"

    @property
    def heading(self) -> str:
        """Its number and title."""
        return f"{self.number if ' ' in self.number else f'Fig. {self.number}'}. {self.title}"


_REGISTERED: list[Item] = []


def item(
    places: str | Mapping[str, Sequence[str]], numbers: Callable[..., xr.Dataset], caption: str = ""
) -> Callable[[Draw], Draw]:
    """Decorator of a function that draws, in the style of the figures: it becomes one item or several.

    Parameters
    ----------
    places
        Paper and number, '004 1', of several papers with a comma between them; or {paper and number: model, pair or
        both}, which stand at the end of the title.
    numbers
        Computes what is drawn from the study and, where they are given, the model and the pair.
    caption
        Title, what the paper shows, and what differs, as paragraphs. Those at the end, or all, may be missing: they
        are the ones of the function's docstring.
    """

    def register(draw: Draw) -> Draw:
        given, own = (list(map(_line, (text or "").strip().split("\n\n"))) for text in (caption, draw.__doc__))
        title, shows, *differs = [*given, *own[len(given) :]] if caption else own
        cases = places if isinstance(places, Mapping) else dict.fromkeys(places.split(", "), ())
        drawn = styled(draw)
        for place, of in cases.items():
            names = [in_braces(name.split("/")) if "/" in name else model_name(name) for name in of]
            full = ", ".join([title.removesuffix("."), " ".join(names)]).removesuffix(", ")
            make = (lambda study, of=of: numbers(study, *of)) if of else numbers
            _REGISTERED.append(Item(*place.split(" ", 1), full, shows, make, drawn, " ".join(differs)))
        return drawn

    return register


def not_drawn(place: str, title: str, shows: str, reason: str) -> None:
    """Register an item that can't be computed, with the reason."""
    _REGISTERED.append(Item(*place.split(" ", 1), title, shows, reason=reason))


def _line(paragraph: str) -> str:
    return " ".join(paragraph.split())


@cache
def items() -> tuple[Item, ...]:
    """All items, in the order of the papers: modules of the folders `paper_…` register them."""
    for module in walk_packages(paper_figs.__path__, "paper_figs."):
        if module.name.startswith("paper_figs.paper_"):
            import_module(module.name)
    return tuple(sorted(_REGISTERED, key=_place))


def _place(one: Item) -> tuple[object, ...]:
    """Figures before equations before tables, the text before the supplement, then by number."""
    kind, _, number = one.number.rpartition(" ")
    letters = number.rstrip("0123456789")
    return one.paper, kind, letters, int(number.removeprefix(letters) or 0)


def chosen(papers: Sequence[str], only: Sequence[str]) -> list[Item]:
    """The items of these papers, or only those with these numbers; InputError for an unknown paper or number."""
    known = sorted({one.paper for one in items()})
    for paper in papers:
        if paper not in known:
            raise InputError(f"paper = {paper!r}: expected {' or '.join(known)}")
    found = [one for one in items() if one.paper in papers]
    numbers = [one.number for one in found]
    for number in only:
        if number not in numbers:
            raise InputError(f"only = {number!r}: expected one of {', '.join(numbers)} for paper {', '.join(papers)}")
    return [one for one in found if not only or one.number in only]
