"""Basins of attraction: how many starts lead to each attractor, and what separates them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.registry import draws
from meanfield._plot.views.fixed_points import names_in
from meanfield._plot.words import NEUTRAL, words_in
from meanfield.toolbox._errors import InputError

NOTHING = 1e-9
LONG = 4  # attractors, from which on names are slanted


@draws(
    "basins", "reaction_basins", view="fraction", reads="attractor*: fraction standard_error convention? label? outcome"
)
def fraction(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The fraction of starts that ends at each attractor, with its standard error where starts were drawn."""
    if "convention" not in part:  # a reaction model has none
        part = part.assign(convention=("attractor", [f"attractor {k}" for k in part["attractor"].values]))
    shares, names = part["fraction"].values, _names(part)
    convention = [str(name) for name in part["convention"].values]
    left_over = 1 - shares.sum()
    if left_over > NOTHING:
        shares, names, convention = np.append(shares, left_over), [*names, "at a saddle"], [*convention, ""]
    error = np.append(part["standard_error"].values, [np.nan] * (len(shares) - part.sizes["attractor"]))
    filling = [colours.get(name, NEUTRAL) for name in convention]
    axes.bar(range(len(shares)), shares, **{"yerr": error, "capsize": 4, "color": filling, **style})
    axes.set_xticks(range(len(names)), names, rotation=30 if len(names) > LONG else 0)
    axes.set_xlabel(f"attractor of {_family(part)}")
    axes.set_ylabel("fraction of starts")
    axes.set_ylim(0, 1.05)


@draws(
    "basins",
    view="separatrix",
    reads="attractor: fraction convention label? outcome; boundary*: separatrix; word: word",
)
def separatrix(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The starts of the family 'consensus' on a line, with the separatrices where the attractor changes."""
    family = part.attrs.get("option_family")
    if family != "consensus":
        raise InputError(f"result is of family = {family!r}: expected 'consensus', whose starts form a line")
    ends = np.sort(part["separatrix"].values)
    for number, (left, right) in enumerate(itertools.pairwise([0.0, *ends, 1.0])):
        name, convention = _between(part, number, right - left)
        axes.barh(0, right - left, left=left, height=0.5, **{"color": colours.get(convention, NEUTRAL), **style})
        axes.text((left + right) / 2, 0.3, name, ha="center", va="bottom")
    for place in ends:
        axes.axvline(place, color="black", linestyle="--", label="separatrix" if place == ends[0] else None)
        axes.annotate(f"{place:.3g}", (place, -0.3), xytext=(3, 0), textcoords="offset points", va="top")
    first, second = words_in(part)
    axes.set_xlabel(f"share of agents who remember {first} only;\nthe others remember {second} only")
    axes.set_xlim(0, 1)
    axes.set_ylim(-0.75, 1)
    axes.set_yticks([])


def _between(part: xr.Dataset, number: int, length: float) -> tuple[str, str]:
    """The name and the convention of the attractor of this interval, where its length tells it."""
    fits = np.flatnonzero(np.abs(part["fraction"].values - length) < NOTHING)
    last = part.sizes["attractor"] - 1
    if part.sizes["boundary"] == last and last - number in fits:
        attractor = last - number  # of equal lengths: attractors come by falling share of the first word
    elif len(fits) == 1:
        attractor = int(fits[0])
    else:
        return "", ""
    return _names(part)[attractor], str(part["convention"].values[attractor])


def _names(part: xr.Dataset) -> list[str]:
    """The name of each attractor, what trajectories do where they don't come to rest, or both."""
    both = zip(names_in(part), part["outcome"].values, strict=True)
    return [str(name) if outcome == "steady" else f"{name}\n{outcome}".strip() for name, outcome in both]


def _family(part: xr.Dataset) -> str:
    if part.attrs.get("option_family") == "dirichlet":
        return f"{int(part.attrs['option_starts']):,} random starts"
    return "starts between both consensus states"
