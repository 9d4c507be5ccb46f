"""Eigenvalues: in the complex plane, and the leading ones of tables of policies and of variants."""

from __future__ import annotations

import itertools
import textwrap
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.curves import note
from meanfield._plot.intervals import name_rows
from meanfield._plot.panels import write_title
from meanfield._plot.registry import draws
from meanfield._plot.words import NEUTRAL, PALETTE, cut_words, model_name, words_in
from meanfield.toolbox._errors import InputError

TOGETHER = 0.01  # of the width, within which eigenvalues can't be seen apart
LEAST_HEIGHT = 0.1
WIDTH = 36  # letters of a line in a legend
CANDIDATE = "candidate"
RAISED = 4  # points
LETTERS = 7  # of a word beside its candidate
APART = 0.15  # between the words of a variant, whose eigenvalues may be equal
ROOM = 0.28  # of the width, on both sides, for the words
POINTS = 72  # of an inch
LEAST_BLOCK = 4  # policies of a model, from which it is named beside them
MOST_ROWS = 24
ZERO = {"color": "0.4", "linestyle": "--", "linewidth": 1, "zorder": 1}


@draws("spectrum", "complex_plane", "mode: eigenvalue eigenvalue_imaginary eigenvalue_error")
def complex_plane(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Eigenvalues with the bounds of their errors in the complex plane; growing modes are right of the line at 0."""
    known = np.isfinite(part["eigenvalue"].values) & np.isfinite(part["eigenvalue_imaginary"].values)
    if not known.any():
        raise InputError("result has no number in eigenvalue and eigenvalue_imaginary: expected one at least")
    if not known.all():
        note(axes, f"without numbers: {np.count_nonzero(~known)}")
    if told := part.attrs.get("completeness"):
        note(axes, textwrap.fill(told, WIDTH))
    part = part.isel(mode=known)
    real, imaginary, error = (part[f"eigenvalue{end}"].values for end in ("", "_imaginary", "_error"))
    bounded = np.isfinite(error)
    error = np.where(bounded, error, 0.0)
    axes.axvline(0, **ZERO)
    axes.errorbar(real, imaginary, xerr=error, yerr=error, **{"fmt": "o", "color": "C0", "capsize": 2, **style})
    unit, height = part["eigenvalue"].attrs.get("units", "1/time"), max(1.3 * np.abs(imaginary).max(), LEAST_HEIGHT)
    axes.set(xlabel=f"real part ({unit})", ylabel=f"imaginary part ({unit})", ylim=(-height, height))
    axes.margins(x=0.1)
    left, right = axes.get_xlim()
    values, pending = real + 1j * imaginary, list(range(len(real)))
    while pending:  # each point at which several eigenvalues lie has their number
        first = pending[0]
        near = [k for k in pending if abs(values[k] - values[first]) < TOGETHER * (right - left)]
        text = (f"×{len(near)}" if len(near) > 1 else "") + ("" if bounded[first] else " (error unknown)")
        if text:
            axes.annotate(text, (real[first], imaginary[first]), xytext=(4, 6), textcoords="offset points")
        pending = [k for k in pending if k not in near]


@draws("drift", "states", "state!: drift", by=("model", "pair", "component"))
def states(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The rate of change of the fraction of agents in each state, a row for each of the 24 that change fastest."""
    rates = part["drift"].values
    fastest = np.sort(np.argsort(-np.abs(np.nan_to_num(rates)), kind="stable")[:MOST_ROWS])
    rows = np.arange(len(fastest))
    axes.axvline(0, color=NEUTRAL, linewidth=0.8)
    (points,) = axes.plot(rates[fastest], rows, **{"linestyle": "none", "marker": "o", "color": "C0", **style})
    axes.hlines(rows, 0, rates[fastest], color=points.get_color(), linewidth=1.5)
    units = part["drift"].attrs.get("units", "1/1")
    name_rows(
        axes,
        [str(state) for state in part["state"].values[fastest]],
        xlabel="rate of change of its fraction" + (f" ({units})" if units != "1/1" else ""),
        ylabel="state" if len(rates) == len(fastest) else f"state, {MOST_ROWS} of {len(rates):,}",
    )


@draws(
    "stability_table",
    "eigenvalues",
    "entry: policy model pair row word strong eigenvalue eigenvalue_error is_fixed_point",
    by=(),
)
def eigenvalues(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The leading eigenvalues of each policy, unstable ones right of the line at 0.

    Circles are candidates, in which all agents remember one word; they are open where that is not a fixed point.
    Diamonds are fixed points. The word of each candidate stands beside it, the strong word in bold.
    """
    policies, row = np.unique(part["policy"].values, return_inverse=True)
    value, error, true = (part[name].values for name in ("eigenvalue", "eigenvalue_error", "is_fixed_point"))
    error = np.where(np.isfinite(error), error, np.nan)  # one that is not known has no bar
    each = [value[row == number] for number in range(len(policies))]
    axes.axvline(0, **ZERO)
    axes.hlines(range(len(each)), [min(one) for one in each], [max(one) for one in each], color="0.85", zorder=0.5)
    candidate = part["row"].values == CANDIDATE
    circle = {"color": PALETTE[0], "markersize": 7, **style}
    diamond = {"color": "black", "marker": "D", "markersize": 3.5, "zorder": 4}
    for which, label, look in (
        (candidate & true, "candidate, a fixed point", circle),
        (candidate & ~true, "candidate, no fixed point", {**circle, "markerfacecolor": "white"}),
        (~candidate, "fixed point", diamond),
    ):
        if which.any():
            look = {"marker": "o", "linestyle": "none", "zorder": 3, "label": label, **look}
            axes.errorbar(value[which], row[which], xerr=error[which], **look)
    axes.margins(x=ROOM)
    axes.autoscale_view()  # words are measured
    for number in range(len(policies)):
        _words(axes, part.isel(entry=row == number), number)
    axes.set_xlabel("leading eigenvalue (1/time)")
    look = {"fontsize": "small", "frameon": False, "columnspacing": 1, "handletextpad": 0.3}
    legend = axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, **look)
    above = legend.get_window_extent().y1 - axes.get_window_extent().y1
    _name_policies(axes, part, policies, mpl.rcParams["axes.titlepad"] + above * POINTS / axes.figure.dpi)


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


@draws("variant_table", "eigenvalue", "variant!: strong_word; variant word!+: eigenvalue is_fixed_point")
def of_variants(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Leading eigenvalue at the candidate of each word by variant, open where it is not a fixed point."""
    axes.axvline(0, **ZERO)
    words = words_in(part)
    for number, word in enumerate(words):
        value, true = (part[name].isel(word=number).values for name in ("eigenvalue", "is_fixed_point"))
        rows = np.arange(len(value)) + APART * (number - (len(words) - 1) / 2)
        look = {"color": colours[word], "marker": "o", "linestyle": "none"}
        for which, text, face in ((true, "", {}), (~true, ", no fixed point", {"markerfacecolor": "white"})):
            if which.any():
                axes.plot(value[which], rows[which], **{**look, "label": f"{word}{text}", **style, **face})
    names = zip(part["variant"].values, part["strong_word"].values, strict=True)
    name_rows(axes, [f"{name}\n(strong: {word})" for name, word in names], xlabel="leading eigenvalue (1/time)")
