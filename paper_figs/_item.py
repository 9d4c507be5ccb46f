"""Figures and tables of the papers, each registered by the number under which the paper prints it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

import paper_figs
from meanfield import InputError
from paper_figs._study import Study


class Item(NamedTuple):
    """A figure or table of a paper: where its numbers come from, and how they are drawn.

    `draw` returns a figure, or a table of a table. An item that can't be computed has a `reason` and no functions.
    """

    paper: str
    number: str
    title: str
    shows: str  # what the paper shows, in one sentence
    numbers: Callable[[Study], xr.Dataset] | None = None
    draw: Callable[[xr.Dataset], Figure | pd.DataFrame] | None = None
    differs: str = ""  # differences from the paper
    reason: str = ""

    @property
    def name(self) -> str:
        """The name of its files."""
        kind, _, number = self.number.rpartition(" ")
        return f"{kind.lower().rstrip('.') or 'figure'}_{number}"


@cache
def items() -> tuple[Item, ...]:
    """All items, in the order of the papers: every module of a folder `paper_…` lists its own as ITEMS."""
    found: list[Item] = []
    for folder in iter_modules(paper_figs.__path__, "paper_figs."):
        if folder.ispkg and folder.name.startswith("paper_figs.paper_"):
            package = import_module(folder.name)
            for script in iter_modules(package.__path__, f"{folder.name}."):
                found += getattr(import_module(script.name), "ITEMS", ())
    return tuple(sorted(found, key=_place))


def _place(item: Item) -> tuple[object, ...]:
    """Figures before equations before tables, the text before the supplement, then by number."""
    kind, _, number = item.number.rpartition(" ")
    letters = number.rstrip("0123456789")
    return item.paper, kind, letters, int(number.removeprefix(letters) or 0)


def chosen(papers: Sequence[str], only: Sequence[str]) -> list[Item]:
    """The items of these papers, or only those with these numbers; InputError for an unknown paper or number."""
    known = sorted({item.paper for item in items()})
    for paper in papers:
        if paper not in known:
            raise InputError(f"paper = {paper!r}: expected {' or '.join(known)}")
    found = [item for item in items() if item.paper in papers]
    for number in only:
        if number not in {item.number for item in found}:
            numbers = ", ".join(item.number for item in found)
            raise InputError(f"only = {number!r}: expected one of {numbers} for paper {', '.join(papers)}")
    return [item for item in found if not only or item.number in only]
