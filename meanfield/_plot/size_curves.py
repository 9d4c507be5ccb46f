"""Mean word shares with bands for several numbers of agents."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from meanfield._plot.scales import show_rounds, show_shares, size_colours, size_label
from meanfield._plot.words import words_in

WIDEST = 3.0  # times the width of lines
LIGHTEST = 0.35  # part of a word's colour for the smallest size


def words_drawn(part: xr.Dataset) -> tuple[str, ...]:
    """The words whose shares are drawn: of two only the first, as their shares sum to 1."""
    words = words_in(part)
    return words[:1] if len(words) == 2 else words


def along_sizes(array: xr.DataArray) -> xr.DataArray:
    """The numbers by rising number of agents, also where one number was selected."""
    return array.sortby("n_agents") if "n_agents" in array.dims else array.expand_dims("n_agents")


def by_round(array: xr.DataArray) -> xr.DataArray:
    """The numbers by rising round, whichever dim has the rounds; it comes last."""
    (dim,) = array["round"].dims
    return array.sortby("round").transpose(..., dim)


def draw_by_size(
    axes: Axes, mean: xr.DataArray, half_width: xr.DataArray, part: xr.Dataset, colours: dict[str, str], **style: Any
) -> None:
    """Means and bands (n_agents, word, round) in a colour for each size; of three words or more, in shades of theirs.

    Where curves fall together all stay visible: lines of small sizes are wide and lie below.
    """
    mean, half_width = (by_round(along_sizes(array)) for array in (mean, half_width))
    sizes, rounds, words = mean["n_agents"].values, mean["round"].values, words_drawn(part)
    widths = mpl.rcParams["lines.linewidth"] * np.linspace(WIDEST if len(sizes) > 1 else 1.0, 1.0, len(sizes))
    show_rounds(axes, float(rounds[-1]))
    for number, word in enumerate(words):
        shades = size_colours(len(sizes)) if len(words) == 1 else _shades(colours[word], len(sizes))
        for k, (size, shade, width) in enumerate(zip(sizes, shades, widths, strict=True)):
            one, half = (array.isel(n_agents=k, word=number) for array in (mean, half_width))
            (line,) = axes.plot(rounds, one, **{"color": shade, "linewidth": width, **style})
            if len(words) == 1:
                line.set_label(size_label(size))
            elif k == len(sizes) - 1:
                line.set_label(word)
            low, high = ((one + side * half).clip(0, 1) for side in (-1, 1))  # shares
            axes.fill_between(rounds, low, high, color=line.get_color(), alpha=0.25, linewidth=0)
    if len(words) > 1 and len(sizes) > 1:
        for size, shade, width in zip(sizes, _shades("black", len(sizes)), widths, strict=True):
            axes.plot([], [], color=shade, linewidth=width, label=size_label(size))
    show_shares(axes, f"mean share of '{words[0]}'" if len(words) == 1 else "mean word share")


def draw_rate_equation(axes: Axes, share: xr.DataArray, part: xr.Dataset) -> None:
    """The word share (word, round) of the rate equation, dashed."""
    share = by_round(share)
    for number, _ in enumerate(words_drawn(part)):
        (line,) = axes.plot(share["round"], share.isel(word=number), color="black", linestyle="--")
        if not number:
            line.set_label("rate equation")


def _shades(colour: str, number: int) -> list[tuple[float, ...]]:
    full, white = np.array(to_rgb(colour)), np.ones(3)
    return [tuple(white + part * (full - white)) for part in np.linspace(LIGHTEST, 1, number + 1)[1:]]
