"""Stability tables as charts: leading eigenvalues of candidates and fixed points, a line for each policy."""

from __future__ import annotations

import itertools
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.intervals import name_rows
from meanfield._plot.panels import write_title
from meanfield._plot.registry import draws
from meanfield._plot.words import PALETTE, cut_words, model_name, words_in

CANDIDATE = "candidate"
RAISED = 4  # points
LETTERS = 7  # of a word beside its candidate
APART = 0.15  # between the words of a variant, whose eigenvalues may be equal
ROOM = 0.28  # of the width, on both sides, for the words
POINTS = 72  # of an inch
LEAST_BLOCK = 4  # policies of a model, from which on it is named beside them


@draws(
    "stability_table",
    view="eigenvalues",
    by=(),
    reads="entry: policy model pair row word strong eigenvalue eigenvalue_error is_fixed_point",
)
def eigenvalues(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The leading eigenvalues of each policy, unstable ones right of the line at 0.

    Circles are candidates, in which all agents remember one word; they are open where that is no fixed point. Diamonds
    are fixed points. The word of each candidate stands beside it, the strong word in bold.
    """
    policies = np.unique(part["policy"].values)
    row = np.searchsorted(policies, part["policy"].values)
    axes.axvline(0, color="0.4", linestyle="--", linewidth=1, zorder=1)
    axes.hlines(range(len(policies)), *_span(part, row, len(policies)), color="0.85", zorder=0.5)
    candidate, true = part["row"].values == CANDIDATE, part["is_fixed_point"].values
    look = {"color": PALETTE[0], "markersize": 7, **style}
    _points(axes, part, row, candidate & true, label="candidate, a fixed point", **look)
    _points(
        axes, part, row, candidate & ~true, label="candidate, no fixed point", **{**look, "markerfacecolor": "white"}
    )
    diamond = {"color": "black", "marker": "D", "markersize": 3.5, "zorder": 4}
    _points(axes, part, row, ~candidate, label="fixed point", **diamond)
    axes.margins(x=ROOM)
    axes.autoscale_view()  # words are measured
    for number in range(len(policies)):
        _words(axes, part.isel(entry=row == number), number)
    axes.set_xlabel("leading eigenvalue (1/time)")
    look = {"fontsize": "small", "frameon": False, "columnspacing": 1, "handletextpad": 0.3}
    legend = axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, **look)
    above = legend.get_window_extent().y1 - axes.get_window_extent().y1
    _name_policies(axes, part, policies, mpl.rcParams["axes.titlepad"] + above * POINTS / axes.figure.dpi)


def _span(part: xr.Dataset, row: np.ndarray, number: int) -> tuple[list[float], list[float]]:
    """The smallest and the largest eigenvalue of each policy."""
    each = [part["eigenvalue"].values[row == k] for k in range(number)]
    return [float(values.min()) for values in each], [float(values.max()) for values in each]


def _points(axes: Axes, part: xr.Dataset, row: np.ndarray, which: np.ndarray, **look: Any) -> None:
    """Eigenvalues with bars of their errors; an error that is not known has no bar."""
    if which.any():
        error = part["eigenvalue_error"].values[which]
        error = np.where(np.isfinite(error), error, np.nan)
        look = {"marker": "o", "linestyle": "none", "zorder": 3, **look}
        axes.errorbar(part["eigenvalue"].values[which], row[which], xerr=error, **look)


def _words(axes: Axes, part: xr.Dataset, row: int) -> None:
    """The words beside the candidates of a policy: the first on its left, the last on its right, others above.

    A word that would hide another point is raised.
    """
    candidates = part.isel(entry=part["row"].values == CANDIDATE)
    words = candidates["word"].values.astype(str).tolist()
    told = cut_words(words, LETTERS)
    order = np.argsort(candidates["eigenvalue"].values, kind="stable")
    for place, k in enumerate(order.tolist()):
        value = float(candidates["eigenvalue"].values[k])
        left, right = place == 0, place == len(order) - 1
        name = axes.annotate(
            told[k], (value, row), xytext=(-6 if left else 6 if right else 0, 0 if left or right else RAISED),
            textcoords="offset points", ha="right" if left else "left" if right else "center",
            va="center" if left or right else "bottom", fontsize="small",
            fontweight="bold" if words[k] == str(candidates["strong"].values[k]) else "normal",
        )  # fmt: skip
        box, points = name.get_window_extent(), [(one, row) for one in part["eigenvalue"].values]
        if any(box.x0 < x < box.x1 for x, _ in axes.transData.transform(points)):
            name.set(y=RAISED, verticalalignment="bottom")


def _name_policies(axes: Axes, part: xr.Dataset, policies: np.ndarray, above: float) -> None:
    """The words of each policy on the left; several models are named beside their policies, if room allows.

    One model is named so many points `above` the axes.
    """
    first = [int(np.argmax(part["policy"].values == policy)) for policy in policies]
    models = [model_name(part["model"].values[k]) for k in first]
    names = ["{" + ", ".join(str(part["pair"].values[k]).split("/")) + "}" for k in first]
    blocks = [(model, len(list(same))) for model, same in itertools.groupby(models)]
    beside = min(number for _, number in blocks) >= LEAST_BLOCK
    if len(blocks) > 1 and not beside:
        names = [f"{model} {name}".strip() for model, name in zip(models, names, strict=True)]
    name_rows(axes, names)
    if len(blocks) == 1 and not axes.get_title():
        write_title(axes, [blocks[0][0]], loc="left", fontsize="medium", pad=above)
    start = 0
    for model, number in blocks if len(blocks) > 1 and beside else []:
        place = (1.02, start + (number - 1) / 2)
        axes.text(*place, model, rotation=270, ha="left", va="center", transform=axes.get_yaxis_transform())
        start += number
        if start < len(policies):
            axes.axhline(start - 0.5, color="0.7", linewidth=0.8)


@draws(
    "variant_table",
    view="eigenvalue",
    reads="variant: variant strong_word; variant word+: eigenvalue is_fixed_point; word+: word",
)
def of_variants(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Leading eigenvalue at the candidate of each word by variant, open where it is no fixed point."""
    axes.axvline(0, color="0.4", linestyle="--", linewidth=1, zorder=1)
    words = words_in(part)
    for number, word in enumerate(words):
        value, true = (part[name].isel(word=number).values for name in ("eigenvalue", "is_fixed_point"))
        rows = np.arange(part.sizes["variant"]) + APART * (number - (len(words) - 1) / 2)
        look = {"color": colours[word], "marker": "o", "linestyle": "none"}
        for which, text, face in ((true, "", {}), (~true, ", no fixed point", {"markerfacecolor": "white"})):
            if which.any():
                axes.plot(value[which], rows[which], **{**look, "label": f"{word}{text}", **style, **face})
    strong = [str(word) for word in part["strong_word"].values]
    names = [f"{name}\n(strong: {word})" for name, word in zip(part["variant"].values, strong, strict=True)]
    name_rows(axes, names)
    axes.set_xlabel("leading eigenvalue (1/time)")
