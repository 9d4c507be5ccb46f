"""Fixed points: on the line of two word shares, in the triangle of three, and as bars of shares."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from meanfield._plot.registry import draws
from meanfield._plot.views import simplex
from meanfield._plot.words import word_colours, words_in
from meanfield._population.population import Population
from meanfield.toolbox._errors import InputError

FILLS = {"stable": "full", "unstable": "none", "marginal": "left"}
LEAST_GAP = 0.04  # between neighbours on the line, for an arrow
MOST_STATES = 12  # in a legend


@draws(
    "fixed_points",
    view="landscape",
    reads="fixed_point: stability convention label? branch?; fixed_point word: word_share; word: word",
)
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


@draws(
    "fixed_points",
    "minimal_naming_game_fixed_points",
    view="line",
    reads="fixed_point: stability convention label? branch?; fixed_point word: word_share; word: word",
)
def line(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Fixed points on the line of the first word's share, with arrows that follow the flow between them.

    Each closed class of memories has a line of its own.
    """
    first, second = _words(part, 2)
    share = part["word_share"].isel(word=0).values
    branch = _lines(part)
    names = np.unique(branch)
    rows = np.searchsorted(names, branch)
    for row in range(len(names)):
        axes.plot([0, 1], [row, row], color="0.75", linewidth=1, zorder=1)
        if names[row] >= 0:
            _arrows(axes, row, share[rows == row], part["stability"].values[rows == row])
    draw_points(axes, share, rows, part["stability"].values, **style)
    _conventions(axes, part, share, rows, colours)
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.75, len(names) - 0.25)
    labels = ["exact consensus" if name < 0 else f"closed class {name}" for name in names]
    axes.set_yticks(range(len(names)) if len(names) > 1 else [], labels if len(names) > 1 else [])
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.set_xlabel(f"share of {first}; the others say {second}")


def _words(part: xr.Dataset, number: int) -> tuple[str, ...]:
    words = words_in(part)
    if len(words) != number:
        raise InputError(f"result has {len(words)} words: expected {number} for this view")
    return words


def _lines(part: xr.Dataset) -> np.ndarray:
    """The line of each fixed point; exact corners lie on the line of the closed class if there is only one."""
    branch = part["branch"].values if "branch" in part else np.zeros(part.sizes["fixed_point"], int)
    classes = np.unique(branch[branch >= 0])
    return branch if len(classes) > 1 else np.zeros_like(branch)


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

    The flow also leaves an end of the line that is no fixed point. Where neighbours are alike, as on both sides of an
    unstable focus, or one is marginal, they don't tell the direction.
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


def _conventions(axes: Axes, part: xr.Dataset, share: np.ndarray, rows: np.ndarray, colours: dict[str, str]) -> None:
    """The name of each fixed point: above those that are stable, below the others."""
    for x, row, name, status in zip(share, rows, names_in(part), part["stability"].values, strict=True):
        above = status == "stable"
        axes.annotate(
            str(name), (x, row), xytext=(0, 8 if above else -8), textcoords="offset points",
            ha="left" if x < 0.05 else "right" if x > 0.95 else "center", va="bottom" if above else "top",
            color=colours.get(str(name), "0.15"),
        )  # fmt: skip


def names_in(part: xr.Dataset) -> np.ndarray:
    """The names of fixed points; conventions where a result has no others."""
    return part["label" if "label" in part else "convention"].values


@draws("fixed_points", view="triangle", reads="fixed_point: stability; fixed_point word: word_share; word: word")
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
    share, stability = part["word_share"].transpose("fixed_point", "word").values, part["stability"].values
    if policy is not None:
        response = simplex.one_response(policy, words)
        if (stable := stability == "stable").any():
            simplex.shade_basins(axes, policy, response, share[stable], [colours[word] for word in words])
        simplex.draw_flow(axes, response)
    draw_points(axes, *simplex.in_plane(share).T, stability, **style)
    axes.legend(loc="upper left", frameon=False)  # the widest corner that the triangle leaves free


@draws(
    "fixed_points",
    "minimal_naming_game_fixed_points",
    view="word_share",
    reads="fixed_point: stability convention label?; fixed_point word: word_share; word: word",
)
def word_share(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Word shares of each fixed point as parts of a bar."""
    both = zip(names_in(part), part["stability"].values, strict=True)
    labels = [f"{name}, {status}" for name, status in both]
    shares = dict(zip(words_in(part), part["word_share"].transpose("word", "fixed_point").values, strict=True))
    _bars(axes, shares, colours, labels, part["stability"].values, **style)
    axes.set_xlabel("word share")


@draws(
    "reaction_fixed_points",
    view="composition",
    reads="fixed_point: fixed_point stability; fixed_point state: composition; state: state",
)
def composition(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Fractions of agents in each state at each fixed point as parts of a bar; unstable ones are hatched."""
    states = [str(state) for state in part["state"].values]
    fractions = dict(zip(states, part["composition"].transpose("state", "fixed_point").values, strict=True))
    labels = [f"{k}, {status}" for k, status in zip(part["fixed_point"].values, part["stability"].values, strict=True)]
    _bars(axes, fractions, word_colours([states]), labels, part["stability"].values, **style)
    axes.set_xlabel("fraction of agents")


def _bars(
    axes: Axes,
    shares: dict[str, np.ndarray],
    colours: dict[str, str],
    labels: list[str],
    status: np.ndarray,
    **style: Any,
) -> None:
    """Stacked bars, the first fixed point on top; those that are not stable are hatched."""
    largest = sorted(shares, key=lambda name: -shares[name].max(initial=0))[:MOST_STATES]
    left = np.zeros(len(labels))
    for name, part in shares.items():
        look = {"color": colours[name], "height": 0.7, "edgecolor": "white", **style}
        bars = axes.barh(range(len(labels)), part, left=left, **look)
        for bar, one in zip(bars, status, strict=True):
            bar.set_hatch("" if one == "stable" else "///")
        left += part
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    further = len(shares) - len(largest)
    title = f"{further} rarer ones have no label" if further else None
    handles = [Patch(color=colours[name], label=name) for name in shares if name in largest]
    axes.legend(handles=handles, title=title, loc="center left", bbox_to_anchor=(1, 0.5))
