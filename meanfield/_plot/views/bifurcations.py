"""Equilibria along a parameter, critical masses, and what committed minorities achieve in finite groups."""

from __future__ import annotations

import itertools
import textwrap
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.curves import note
from meanfield._plot.intervals import error_bars
from meanfield._plot.registry import draws
from meanfield._plot.scales import show_shares, whole_ticks
from meanfield._plot.words import NEUTRAL, word_colours, words_in
from meanfield.toolbox._errors import InputError

MARKERS = {"fold": "o", "branch point": "D", "Hopf": "^"}
MARK = {"color": "black", "markersize": 5}
MOST_NAMED = 4  # states
LINES = {"stable": "-", "unstable": "--", "marginal": ":"}
WIDTH = 40  # letters of a line in a legend


@draws("bifurcation", "word_share", "point: parameter stability fold arc; point word!: word_share")
def branches(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The word share of every equilibrium against the parameter: full where stable, dashed where not; folds marked."""
    number, word = _followed(part)
    x, share, folds = part["parameter"].values, part["word_share"].values[:, number], part["fold"].values
    _draw_arcs(axes, part, share, colours[word], **style)
    if folds.any():
        axes.plot(x[folds], share[folds], "o", label="fold", **MARK)
    _label(axes, part, word)


@draws(
    "reaction_bifurcation",
    "composition",
    "point: parameter stability bifurcation fold arc; point state!: composition",
    by=(),
)
def branches_of_states(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Fractions of agents in the states that change most against the parameter, with the bifurcations marked."""
    x, fractions, found = (part[name].values for name in ("parameter", "composition", "bifurcation"))
    most = np.argsort(-np.ptp(fractions, axis=0), kind="stable")[:MOST_NAMED]
    names = [str(part["state"].values[k]) for k in most]
    for name, colour, k in zip(names, word_colours([names]).values(), most, strict=True):
        axes.plot([], [], color=colour, label=name)
        _draw_arcs(axes, part, fractions[:, k], colour, named=False, **style)
        for kind, marker in MARKERS.items():
            axes.plot(x[found == kind], fractions[found == kind, k], marker, **MARK)
    for status, line in LINES.items():
        if (part["stability"].values == status).any():
            axes.plot([], [], line, color=NEUTRAL, label=status)
    for kind, marker in MARKERS.items():
        if (found == kind).any():
            axes.plot([], [], marker, label=kind, **MARK)
    show_shares(axes, "fraction of agents", xlabel=part.attrs.get("parameter", "parameter"))


def _draw_arcs(axes: Axes, part: xr.Dataset, y: np.ndarray, colour: str, *, named: bool = True, **style: Any) -> None:
    """Each arc, with the line of its stability, which may be named, once."""
    x, labelled = part["parameter"].values, set() if named else set(LINES)
    for arc in np.unique(part["arc"].values):
        here = np.flatnonzero(part["arc"].values == arc)
        for status, points in _stretches(part["stability"].values[here], part["fold"].values[here]):
            look = {"color": colour, "linestyle": LINES[status], "label": None if status in labelled else status}
            axes.plot(x[here[points]], y[here[points]], **{**look, **style})
            labelled.add(status)


def _followed(part: xr.Dataset) -> tuple[int, str]:
    """The word whose share is drawn, the committed agents' word or the first, and its number."""
    words = words_in(part)
    word = str(part.attrs.get("word") or words[0])
    if word not in words:
        raise InputError(f"result has attrs['word'] = {word!r}: expected one of {', '.join(words)}")
    return words.index(word), word


def _stretches(stability: np.ndarray, fold: np.ndarray) -> list[tuple[str, slice]]:
    """Pieces of an arc of one stability each, which share their ends; a fold, where stability changes, is left out."""
    n = len(stability)
    if n == 1:
        return [(str(stability[0]), slice(0, 1))]
    of_step = [str(stability[k + 1] if fold[k] else stability[k]) for k in range(n - 1)]
    found, start = [], 0
    for status, steps in itertools.groupby(of_step):
        end = start + len(list(steps))
        found.append((status, slice(start, end + 1)))
        start = end
    return found


def _label(axes: Axes, part: xr.Dataset, word: str) -> None:
    committed = part.attrs["parameter"] == "committed"
    told = f"fraction of agents committed to {word}" if committed else "fraction of the last policy"
    show_shares(axes, f"share of {word}", xlabel=told)


@draws(
    "critical_mass",
    "word_share",
    ": critical_mass; word!: word_share old_word_share; fold*: fold_parameter; fold* word: fold_word_share",
)
def critical_point(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The old state without newcomers, the point at which it vanishes, and all folds, in the plane of a bifurcation."""
    number, word = _followed(part)
    one = part.isel(word=number)
    before, there, mass = (one[name].item() for name in ("old_word_share", "word_share", "critical_mass"))
    look = {"color": colours[word], "linestyle": "none", "zorder": 4}
    if np.isfinite(before):
        axes.plot(0, before, **{**look, "marker": "s", "label": "old state", **style})
    if part.sizes["fold"]:
        label = _once(axes, "fold")  # a bifurcation in the same axes may name them
        axes.plot(one["fold_parameter"], one["fold_word_share"], "o", label=label, zorder=5, **MARK)
    if np.isfinite(mass):
        axes.axvline(mass, color=NEUTRAL, linestyle=":")
        star = {"marker": "*", "markersize": 13, "label": f"it vanishes at {mass:.3g}"}
        axes.plot(mass, there, **{**look, **star, **style})
    else:
        note(axes, f"it never vanishes:\n{textwrap.fill(str(part.attrs['reason']), WIDTH)}")
    _label(axes, part, word)


def _once(axes: Axes, label: str) -> str | None:
    return None if label in axes.get_legend_handles_labels()[1] else label


FLIPPED = "n_committed!: flipped; bound=low,high n_committed: interval; : mean_field"


@draws("committed_minority", "number", FLIPPED)
def flipped_by_number(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The fraction of runs that flip against the number of committed agents, and the mean-field prediction."""
    _flipped(axes, part, 1, **style)
    axes.set_xlabel(f"agents committed to {part.attrs['committed_word']}, of {int(part.attrs['option_n_agents']):,}")
    whole_ticks(axes.xaxis)


@draws("committed_minority", "fraction", FLIPPED)
def flipped_by_fraction(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The same against the fraction of committed agents, the parameter of a bifurcation, into which it may be drawn."""
    _flipped(axes, part, int(part.attrs["option_n_agents"]), **style)
    axes.set_xlabel(f"fraction of agents committed to {part.attrs['committed_word']}")


def _flipped(axes: Axes, part: xr.Dataset, scale: int, **style: Any) -> None:
    label = f"runs that flip, N = {int(part.attrs['option_n_agents']):,}"
    look = {"color": "black", "marker": "s", "label": label, **style}  # folds are circles
    error_bars(axes, part["n_committed"].values / scale, part["flipped"], *part["interval"].values, **look)
    predicted = part["mean_field"].item() / scale
    if np.isfinite(predicted):
        label = _once(axes, f"mean field, {predicted:.3g}")  # another size in the same axes may name it
        axes.axvline(predicted, color=NEUTRAL, linestyle="--", label=label)
    else:
        told = textwrap.fill(str(part.attrs["mean_field_reason"]), WIDTH)
        note(axes, f"no mean-field prediction:\n{told}")
    # A bifurcation may be there already, whose axis holds another share
    show_shares(axes, axes.get_ylabel() or "fraction of runs that flip")
