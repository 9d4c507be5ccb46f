"""Lines with bands, and word shares for several numbers of agents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D

from meanfield._plot.scales import show_rounds, show_shares, size_colours, size_label
from meanfield._plot.words import words_in

WIDEST = 3.0  # times the width of lines
LIGHTEST = 0.35  # part of a word's colour for the smallest size


def curve(axes: Axes, x: Any, y: Any, band: Iterable[Any] | None = None, **look: Any) -> Line2D:
    """A line, and the area between the two ends of its band in the same colour."""
    (line,) = axes.plot(x, y, **look)
    if band is not None:
        axes.fill_between(x, *band, color=line.get_color(), alpha=0.2, linewidth=0)
    return line


def note(axes: Axes, text: str) -> None:
    """An entry of the legend without a mark."""
    axes.plot([], [], " ", label=text)


def words_drawn(part: xr.Dataset) -> tuple[str, ...]:
    """The words whose shares are drawn: of two only the first, as their shares sum to 1."""
    words = words_in(part)
    return words[:1] if len(words) == 2 else words


def around(mean: xr.DataArray, half_width: xr.DataArray) -> list[xr.DataArray]:
    """The ends of the band of a share."""
    return [(mean + side * half_width).clip(0, 1) for side in (-1, 1)]


def draw_by_size(
    axes: Axes, mean: xr.DataArray, half_width: xr.DataArray, part: xr.Dataset, colours: dict[str, str], **style: Any
) -> None:
    """Means and bands (n_agents, time, word) in a colour for each size; of three words or more, in shades of theirs.

    Where curves fall together all stay visible: lines of small sizes are wide and lie below.
    """
    sizes, rounds, words = mean["n_agents"].values, mean["round"].values, words_drawn(part)
    widths = mpl.rcParams["lines.linewidth"] * np.linspace(WIDEST if len(sizes) > 1 else 1.0, 1.0, len(sizes))
    show_rounds(axes, float(rounds[-1]))
    for number, word in enumerate(words):
        shades = size_colours(len(sizes)) if len(words) == 1 else _shades(colours[word], len(sizes))
        for k, size in enumerate(sizes):
            one, half = (array.isel(n_agents=k, word=number) for array in (mean, half_width))
            label = size_label(size) if len(words) == 1 else word if k == len(sizes) - 1 else None
            look = {"color": shades[k], "linewidth": widths[k], "label": label, **style}
            curve(axes, rounds, one, around(one, half), **look)
    if len(words) > 1 and len(sizes) > 1:
        for size, shade, width in zip(sizes, _shades("black", len(sizes)), widths, strict=True):
            axes.plot([], [], color=shade, linewidth=width, label=size_label(size))
    show_shares(axes, f"mean share of '{words[0]}'" if len(words) == 1 else "mean word share")


def draw_rate_equation(axes: Axes, share: xr.DataArray, part: xr.Dataset) -> None:
    """The word share (time, word) of the rate equation, dashed."""
    for number, _ in enumerate(words_drawn(part)):
        label = None if number else "rate equation"
        axes.plot(share["round"], share.isel(word=number), color="black", linestyle="--", label=label)


def _shades(colour: str, number: int) -> list[tuple[float, ...]]:
    full, white = np.array(to_rgb(colour)), np.ones(3)
    return [tuple(white + part * (full - white)) for part in np.linspace(LIGHTEST, 1, number + 1)[1:]]
