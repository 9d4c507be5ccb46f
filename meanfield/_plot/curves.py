"""Lines with bands: word shares for several numbers of agents, and runs of an ensemble with their ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D

from meanfield._plot.scales import last_change, show_rounds, show_shares, size_colours, size_label
from meanfield._plot.words import NEUTRAL, word_colours, words_in

WIDEST = 3.0  # times the width of lines
LIGHTEST = 0.35  # part of a word's colour for the smallest size
MOST_LINES = 100
BAND = (5, 95)  # percentiles of the runs
NO_CONSENSUS = "no consensus"
MARKERS = "o^svDPX*"


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


class End(NamedTuple):
    """One way in which runs end."""

    name: str
    colour: str
    marker: str
    reached: np.ndarray  # whether a run ends so, in the shape of `ends_of`


def ends_of(part: xr.Dataset) -> xr.DataArray:
    """The word of consensus of each run, or the group of states in which it was absorbed."""
    return part["consensus_word" if "consensus_word" in part else "absorbed_group"]


def each_end(part: xr.Dataset, colours: dict[str, str]) -> list[End]:
    """The ends that are possible, as far as the result tells; the last one is not a consensus."""
    ends = ends_of(part)
    known = ends.notnull().values
    names = words_in(part) or tuple(sorted({str(name) for name in ends.values[known]}))
    colours = colours or word_colours([names])
    found = [
        End(name, colours[name], MARKERS[number % len(MARKERS)], known & (ends.values == name))
        for number, name in enumerate(names)
    ]
    return [*found, End(NO_CONSENSUS if "consensus_word" in part else "not absorbed", NEUTRAL, "x", ~known)]


def with_runs(name: str, number: int) -> str:
    """A label that says how many runs it stands for."""
    return f"{name}: {number:,} run{'s' * (number != 1)}"


def draw_band(axes: Axes, rounds: np.ndarray, runs: np.ndarray, label: str, **style: Any) -> None:
    """The mean over runs (run, round), and the band between their 5th and 95th percentiles."""
    curve(axes, rounds, runs.mean(0), np.percentile(runs, BAND, axis=0), **{"label": label, **style})


def draw_lines(axes: Axes, rounds: np.ndarray, runs: np.ndarray, colours: str | Sequence[str]) -> None:
    """Thin lines for the first 100 runs (run, round), in one colour or each in its own."""
    for run, colour in zip(runs[:MOST_LINES], np.resize(colours, len(runs)), strict=False):
        axes.plot(rounds, run, color=str(colour), linewidth=0.5, alpha=0.3)


def tell_lines(axes: Axes, runs: int) -> None:
    """An entry of the legend that says how many runs have lines, where not all have."""
    if runs > MOST_LINES:
        axes.plot([], [], color=NEUTRAL, linewidth=0.5, label=f"the first {MOST_LINES} runs")


def draw_groups(
    axes: Axes,
    shares: xr.DataArray,
    names: Iterable[str],
    colours: Iterable[Any],
    ylabel: str,
    *,
    thin: bool = False,
    **style: Any,
) -> None:
    """A share of runs (group, run, round) with a mean and a band for each group, and `thin` lines of the runs.

    Rounds without a number, such as round 0, in which nobody meets, are left out.
    """
    shares = shares.dropna("round", how="all")
    rounds = shares["round"].values
    show_rounds(axes, last_change(rounds, np.moveaxis(shares.values, -1, 0)))
    for runs, name, colour in zip(shares.values, names, colours, strict=True):
        if thin:
            draw_lines(axes, rounds, runs, colour)
        draw_band(axes, rounds, runs, name, **{"color": colour, **style})
    if thin:
        tell_lines(axes, shares.sizes["run"])
    show_shares(axes, ylabel)


def draw_sizes(axes: Axes, shares: xr.DataArray, ylabel: str, **style: Any) -> None:
    """A share of runs (n_agents, run, round) for each number of agents."""
    sizes = shares["n_agents"].values
    draw_groups(axes, shares, map(size_label, sizes), size_colours(len(sizes)), ylabel, **style)
