"""Fixed points and basins of attraction: on the line of two word shares, in the triangle of three, and as bars."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from meanfield._plot.registry import draws
from meanfield._plot.views import simplex
from meanfield._plot.words import NEUTRAL, word_colours, words_in
from meanfield._population.population import Population
from meanfield.toolbox._errors import InputError

FILLS = {"stable": "full", "unstable": "none", "marginal": "left"}
LEAST_GAP = 0.04  # between neighbours on the line, for an arrow
MOST_STATES = 12  # in a legend
NOTHING = 1e-9
LONG = 4  # attractors, from which names are slanted
ON_A_LINE = "fixed_point: stability convention label? branch?; fixed_point word!: word_share"


@draws("fixed_points", "landscape", ON_A_LINE)
def landscape(
    axes: Axes,
    part: xr.Dataset,
    colours: dict[str, str],
    *,
    policy: xr.Dataset | Population | None = None,
    **style: Any,
) -> None:
    """The line for two words, the triangle for three, bars of word shares for more."""
    words = words_in(part)
    if len(words) == 3:
        triangle(axes, part, colours, policy=policy, **style)
        return
    if policy is not None:
        raise InputError(f"policy is given for {len(words)} words: expected only with 3, whose flow it adds")
    (line if len(words) == 2 else word_share)(axes, part, colours, **style)


@draws("fixed_points minimal_naming_game_fixed_points", "line", ON_A_LINE)
def line(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Fixed points on the line of the first word's share, with arrows that follow the flow between them.

    Each closed class of memories has a line of its own.
    """
    first, second = _words(part, 2)
    share, stability = part["word_share"].isel(word=0).values, part["stability"].values
    branch = part["branch"].values if "branch" in part else np.zeros(len(share), int)
    if len(np.unique(branch[branch >= 0])) < 2:
        branch = np.zeros_like(branch)  # exact corners lie on the line of the only closed class
    names, rows = np.unique(branch, return_inverse=True)
    for row, name in enumerate(names):
        axes.plot([0, 1], [row, row], color="0.75", linewidth=1, zorder=1)
        if name >= 0:
            _arrows(axes, row, share[rows == row], stability[rows == row])
    draw_points(axes, share, rows, stability, **style)
    for x, row, name, status in zip(share, rows, _names_in(part), stability, strict=True):
        above = status == "stable"
        axes.annotate(
            str(name), (x, row), xytext=(0, 8 if above else -8), textcoords="offset points",
            ha="left" if x < 0.05 else "right" if x > 0.95 else "center", va="bottom" if above else "top",
            color=colours.get(str(name), "0.15"),
        )  # fmt: skip
    labels = ["exact consensus" if name < 0 else f"closed class {name}" for name in names]
    axes.set_yticks(range(len(names)) if len(names) > 1 else [], labels if len(names) > 1 else [])
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.75, len(names) - 0.25), xlabel=f"share of {first}; the others say {second}")


def _words(part: xr.Dataset, number: int) -> tuple[str, ...]:
    words = words_in(part)
    if len(words) != number:
        raise InputError(f"result has {len(words)} words: expected {number} for this view")
    return words


def draw_points(axes: Axes, x: np.ndarray, y: np.ndarray, stability: np.ndarray, **style: Any) -> None:
    """Fixed points: filled where stable, open where unstable, half filled where marginal."""
    for status, fill in FILLS.items():
        here = stability == status
        if here.any():
            marker = {"marker": "o", "markersize": 8, "fillstyle": fill, "markerfacecoloralt": "white"}
            look = {"color": "0.15", "linestyle": "none", "clip_on": False, "zorder": 4, "label": status}
            axes.plot(x[here], y[here], **{**marker, **look, **style})


def _arrows(axes: Axes, row: int, share: np.ndarray, stability: np.ndarray) -> None:
    """Arrows from unstable to stable neighbours.

    The flow also leaves an end of the line that is not a fixed point. Where neighbours are alike, as on both sides of
    an unstable focus, or one is marginal, they don't tell the direction.
    """
    order = np.argsort(share)
    places, status = [0.0, *share[order], 1.0], ["unstable", *stability[order], "unstable"]
    for (left, right), (a, b) in zip(itertools.pairwise(places), itertools.pairwise(status), strict=True):
        if right - left > LEAST_GAP and {a, b} == {"stable", "unstable"}:
            tail, head = (left, right) if b == "stable" else (right, left)
            middle, half = (tail + head) / 2, (head - tail) * 0.2
            axes.annotate(
                "", (middle + half, row), xytext=(middle - half, row), zorder=2,
                arrowprops={"arrowstyle": "-|>", "color": "0.45", "shrinkA": 0, "shrinkB": 0},
            )  # fmt: skip


def _names_in(part: xr.Dataset) -> np.ndarray:
    """The names of fixed points; conventions where a result has no others."""
    return part["label" if "label" in part else "convention"].values


@draws("fixed_points", "triangle", "fixed_point: stability; fixed_point word!: word_share")
def triangle(
    axes: Axes,
    part: xr.Dataset,
    colours: dict[str, str],
    *,
    policy: xr.Dataset | Population | None = None,
    **style: Any,
) -> None:
    """Fixed points in the triangle of three word shares; with the policy also the flow and the basins of attraction."""
    words = _words(part, 3)
    simplex.frame(axes, words, colours)
    share, stability = part["word_share"].values, part["stability"].values
    if policy is not None:
        response = simplex.one_response(policy, words)
        if (stable := stability == "stable").any():
            simplex.shade_basins(axes, policy, response, share[stable], [colours[word] for word in words])
        simplex.draw_flow(axes, response)
    draw_points(axes, *simplex.in_plane(share).T, stability, **style)
    axes.legend(loc="upper left", frameon=False)  # the widest corner that the triangle leaves free


@draws(
    "fixed_points minimal_naming_game_fixed_points",
    "word_share",
    "fixed_point: stability convention label?; fixed_point word!: word_share",
)
def word_share(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Word shares of each fixed point as parts of a bar."""
    _bars(axes, words_in(part), part["word_share"].values, colours, _names_in(part), part["stability"].values, **style)
    axes.set_xlabel("word share")


@draws("reaction_fixed_points", "composition", "fixed_point!: stability; fixed_point state!: composition")
def composition(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Fractions of agents in each state at each fixed point as parts of a bar; unstable ones are hatched."""
    states = tuple(str(state) for state in part["state"].values)
    names, status = part["fixed_point"].values, part["stability"].values
    _bars(axes, states, part["composition"].values, word_colours([states]), names, status, **style)
    axes.set_xlabel("fraction of agents")


def _bars(
    axes: Axes,
    kinds: tuple[str, ...],
    shares: np.ndarray,
    colours: dict[str, str],
    names: np.ndarray,
    status: np.ndarray,
    **style: Any,
) -> None:
    """Stacked bars (fixed point, kind), the first fixed point on top; those that are not stable are hatched."""
    hatches, rows = ["" if one == "stable" else "///" for one in status], np.arange(len(names))
    for k, name in enumerate(kinds):
        look = {"color": colours[name], "height": 0.7, "edgecolor": "white", "hatch": hatches, **style}
        axes.barh(rows, shares[:, k], left=shares[:, :k].sum(1), **look)
    axes.set_yticks(rows, [f"{name}, {one}" for name, one in zip(names, status, strict=True)])
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    largest = np.argsort(-shares.max(0, initial=0), kind="stable")[:MOST_STATES]
    further = len(kinds) - len(largest)
    title = f"{further} rarer ones have no label" if further else None
    handles = [Patch(color=colours[kinds[k]], label=kinds[k]) for k in sorted(largest)]
    axes.legend(handles=handles, title=title, loc="center left", bbox_to_anchor=(1, 0.5))


@draws("basins reaction_basins", "fraction", "attractor*: fraction standard_error convention? label? outcome")
def fraction(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The fraction of starts that ends at each attractor, with its standard error where starts were drawn."""
    if "convention" not in part:  # a reaction model has none
        part = part.assign(convention=("attractor", [f"attractor {k}" for k in part["attractor"].values]))
    shares, names, error = part["fraction"].values, _attractors(part), part["standard_error"].values
    convention = part["convention"].values.tolist()
    left_over = 1 - shares.sum()
    if left_over > NOTHING:
        shares, error = np.append(shares, left_over), np.append(error, np.nan)
        names, convention = [*names, "at a saddle"], [*convention, ""]
    filling = [colours.get(name, NEUTRAL) for name in convention]
    axes.bar(range(len(shares)), shares, **{"yerr": error, "capsize": 4, "color": filling, **style})
    axes.set_xticks(range(len(names)), names, rotation=30 if len(names) > LONG else 0)
    drawn = part.attrs.get("option_family") == "dirichlet"
    family = f"{int(part.attrs['option_starts']):,} random starts" if drawn else "starts between both consensus states"
    axes.set(xlabel=f"attractor of {family}", ylabel="fraction of starts", ylim=(0, 1.05))


@draws("basins", "separatrix", "attractor: fraction convention label? outcome; boundary*: separatrix; word: word")
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
    told = f"share of agents who remember {first} only;\nthe others remember {second} only"
    axes.set(xlim=(0, 1), ylim=(-0.75, 1), yticks=[], xlabel=told)


def _between(part: xr.Dataset, number: int, length: float) -> tuple[str, str]:
    """The name and the convention of the attractor of this interval, where its length tells it."""
    fits = np.flatnonzero(np.abs(part["fraction"].values - length) < NOTHING)
    last = part.sizes["attractor"] - 1
    if part.sizes["boundary"] == last and last - number in fits:
        attractor = last - number  # of equal lengths: attractors come by decreasing share of the first word
    elif len(fits) == 1:
        attractor = int(fits[0])
    else:
        return "", ""
    return _attractors(part)[attractor], str(part["convention"].values[attractor])


def _attractors(part: xr.Dataset) -> list[str]:
    """The name of each attractor, what trajectories do where they don't come to rest, or both."""
    both = zip(_names_in(part), part["outcome"].values, strict=True)
    return [str(name) if outcome == "steady" else f"{name}\n{outcome}".strip() for name, outcome in both]
