"""The panels of a result, and the axes into which they are drawn."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import Collection, PolyCollection
from matplotlib.figure import FigureBase
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from meanfield._plot.words import model_name, words_in
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._labels import canonical_order, real_numbers

MOST_PANELS = 100
COLUMNS = 4
MODEL_AND_PAIR = ("model", "pair")
WIDEST = 44  # letters of a line in a legend
BESIDE = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
SPEAKING = ("quantity", "observable", "endpoint", "population")  # dims whose labels need no name before them
OF_EACH = ("completeness", "reason", "transition", "value")  # attributes of a result, and variables of a stack


def panels_of(result: xr.Dataset, by: Sequence[str]) -> list[xr.Dataset]:
    """The part of the result for each panel, one for each combination of labels along these dims.

    Combinations without a single number, as of a model and a pair that were never measured, have no panel.
    """
    dims = [dim for dim in by if dim in result.dims]
    places = [dict(zip(dims, place, strict=True)) for place in product(*(range(result.sizes[dim]) for dim in dims))]
    if len(places) > MOST_PANELS:
        raise InputError(f"result has {len(places)} panels over {', '.join(dims)}: select at most {MOST_PANELS}")
    parts = [_in_order(result.isel(place)) for place in places]
    # Other dims list what was done: without consensus in any run a panel of a sweep has no number, and is one.
    if set(dims) & set(MODEL_AND_PAIR):
        parts = [part for part in parts if _measured(part)]
    if not parts:
        raise InputError("result holds no numbers: there is nothing to draw")
    return parts


def _in_order(part: xr.Dataset) -> xr.Dataset:
    """Words and states in the order of their numbers; states with names, of reaction models, stay as they are.

    What a stack has for each policy is an attribute of its result.
    """
    part = part.assign_attrs({name: part[name].item() for name in OF_EACH if name in part and not part[name].dims})
    named = "state" in part.coords and part["state"].dtype.kind in "UOT"
    return part if named else canonical_order(part, "result")


def _measured(part: xr.Dataset) -> bool:
    arrays = [array for array in part.data_vars.values() if array.dtype.kind == "f"]
    return not arrays or any(bool(array.notnull().any()) for array in arrays)


def axes_for(number: int, ax: Any, figsize: Any) -> np.ndarray:
    """One axes for each panel: the given ones, or new ones of a figure with at most four in a row."""
    if figsize is not None:
        figsize = real_numbers(figsize, "figsize")
        if figsize.shape != (2,) or not (np.isfinite(figsize) & (figsize > 0)).all():
            raise InputError(f"figsize = {figsize.tolist()}: expected a width and a height in inches, as in (6, 4)")
        if ax is not None:
            raise InputError("figsize and ax are both given: expected one of them, as axes have a figure already")
    if ax is not None:
        return _given(number, ax)
    columns = min(COLUMNS, number)
    rows = -(-number // columns)
    width, height = plt.rcParams["figure.figsize"]
    size = (width, height) if number == 1 else (0.45 * width * columns, 0.5 * height * rows)
    figure, grid = plt.subplots(
        rows, columns, figsize=size if figsize is None else figsize, squeeze=False, layout="constrained"
    )
    for axes in grid.ravel()[number:]:
        figure.delaxes(axes)
    return grid.ravel()[:number]


def _given(number: int, ax: Any) -> np.ndarray:
    given = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    for one in given:
        if not isinstance(one, Axes):
            raise InputError(f"ax holds a {type(one).__name__}: expected matplotlib axes")
    if len(given) != number:
        raise InputError(f"ax holds {len(given)} axes: expected {number}, one for each panel of the result")
    return given


def show_single_points(axes: Axes) -> None:
    """Mark every line with one point only, as at a single time; it would not be seen."""
    for line in axes.lines:
        if line.get_marker() == "None" and np.isfinite(line.get_xydata()).all(1).sum() == 1:
            line.set_marker("o")


def write_legends(axes: Sequence[Axes], *, new: bool, together: bool, widen: bool) -> bool:
    """A legend in each panel that names something; one beside all panels where `together` and one names what all do.

    In a `new` figure it stands beside the panel where it would cover what is drawn, and `widen` gives it room. What
    names something though nothing is drawn, such as the reason, is written into the panel. Returns whether a legend
    stands beside a panel.
    """
    named = [one for one in axes if one.get_legend_handles_labels()[0]]
    empty = [one for one in named if new and not _holds_data(one)]
    for one in empty:
        text = "\n".join(["nothing to draw:", *one.get_legend_handles_labels()[1]])
        one.text(0.5, 0.5, text, transform=one.transAxes, ha="center", va="center")
        one.set(xticks=[], yticks=[])
        one.minorticks_off()
    named = [one for one in named if one not in empty]
    handles = [one.get_legend_handles_labels() for one in named]
    most = max(handles, key=lambda one: len(one[1]), default=([], []))
    same = all(set(one[1]) <= set(most[1]) for one in handles)
    beside: dict[int, float] = {}
    unnamed = [one for one in axes if one not in named and one.axison]
    if new and together and len(axes) > 1 and named and not unnamed and same:
        beside[0] = _legend(axes[0].figure, *most, loc="outside right center").get_window_extent().width
        named = []
    for one in named:
        if _covers(one, _legend(one)) and new:
            column, width = round(one.bbox.x0), _legend(one, **BESIDE).get_window_extent().width
            beside[column] = max(width, beside.get(column, 0.0))
    if beside and widen:
        figure = axes[0].figure
        figure.set_figwidth(figure.get_figwidth() + sum(beside.values()) / figure.dpi)
    return bool(beside)


def _legend(owner: Axes | FigureBase, *entries: Any, **place: Any) -> Legend:
    """A legend with long entries in several lines."""
    legend = owner.legend(*entries, **place)
    for text in legend.get_texts():
        text.set_text(_filled(text.get_text(), WIDEST))
    return legend


def _holds_data(axes: Axes) -> bool:
    """Whether anything is drawn, such as a named line across the whole panel."""
    named = [line for line in axes.get_legend_handles_labels()[0] if isinstance(line, Line2D)]
    lines = any(np.isfinite(line.get_xydata()).all(1).any() for line in named)
    return lines or bool(np.isfinite(axes.dataLim.get_points()).all())


def _covers(axes: Axes, legend: Legend) -> bool:
    """Whether a legend hides lines, points, bands or bars; lines across the whole panel don't count."""
    box = legend.get_window_extent()
    for artist in [*axes.lines, *axes.patches, *axes.collections]:
        if not all(artist.get_transform().contains_branch_seperately(axes.transData)):
            continue
        paths = artist.get_paths() if isinstance(artist, Collection) else [artist.get_path()]
        filled = isinstance(artist, (Patch, PolyCollection))
        for path in map(artist.get_transform().transform_path, paths):
            line = not isinstance(artist, Line2D) or artist.get_linestyle() != "None"
            if box.count_contains(path.vertices) or (line and path.intersects_bbox(box, filled)):
                return True
    return False


def write_titles(axes: np.ndarray, parts: Sequence[xr.Dataset], by: Sequence[str], *, new: bool) -> None:
    """Over each panel the labels that tell it from others; over a new figure those that its panels share.

    What has no model and no pair, as the result of a population, has the name of its policy instead.
    """
    labels = [{dim: _label(part, dim) for dim in dict.fromkeys((*MODEL_AND_PAIR, *by))} for part in parts]
    for part, label in zip(parts, labels, strict=True):
        label["model"] = label["model"] or ("" if label["pair"] else str(part.attrs.get("policy", "")))
    shared = {dim for dim in labels[0] if len({one[dim] for one in labels}) == 1}
    if len(parts) == 1:
        shared = set()
    for one, label in zip(axes, labels, strict=True):
        own = [text for dim, text in label.items() if text and dim not in shared]
        too_wide = one.title.get_window_extent().width > one.get_window_extent().width
        if own and (too_wide or not one.get_title()):
            write_title(one, own)
    common = ", ".join(text for dim, text in labels[0].items() if text and dim in shared)
    if new and common:
        axes[0].figure.suptitle(common)


def write_title(axes: Axes, labels: Sequence[str], **look: Any) -> None:
    """The labels above a panel, in lines that are no wider than it; a label stays on a line that has room for it."""
    title = axes.set_title(", ".join(labels), **look)
    width, room = title.get_window_extent().width, axes.get_window_extent().width
    if width > room:
        letters = int(len(title.get_text()) * room / width)
        pair = rf"\{{.{{,{max(0, letters - 2)}}}\}}"
        whole = [re.sub(".+" if len(one) <= letters else pair, _unbroken, one) for one in labels]
        title.set_text(_filled(", ".join(whole), letters))


def wrap_labels(axes: Axes) -> None:
    """Labels of both axes in lines that are no longer than these."""
    for label, side in ((axes.xaxis.label, "width"), (axes.yaxis.label, "height")):
        length, room = (getattr(one.get_window_extent(), side) for one in (label, axes))
        if length > room:
            letters = int(max(map(len, label.get_text().split("\n"))) * room / length)
            told = [_filled(label.get_text(), most) for most in range(letters, letters // 2, -1)]
            label.set_text([one for one in told if one.count("\n") == told[0].count("\n")][-1])  # of like lengths


def _filled(text: str, letters: int) -> str:
    """The text in lines of so many letters, in which no equation is broken."""
    whole = text.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    lines = [textwrap.fill(line, max(letters, 1), break_long_words=False) for line in whole.split("\n")]
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def _unbroken(found: re.Match[str]) -> str:
    return found[0].replace(" ", "\N{NO-BREAK SPACE}")


def _label(part: xr.Dataset, dim: str) -> str:
    if dim not in part.coords or part[dim].dims:
        return ""
    label = part[dim].item()
    if dim == "model":
        return model_name(label)
    if dim == "pair":
        return "{" + ", ".join(words_in(part) or str(label).split("/")) + "}"
    if dim == "component":
        return str(part["component_policy"].item())
    if dim in SPEAKING:
        return str(label).replace("_", " ")
    if dim == "n_agents":
        return f"N = {label:,}"
    return f"{dim} {label:g}" if isinstance(label, float) else f"{dim} {label}"
