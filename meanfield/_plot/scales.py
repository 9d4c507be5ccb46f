"""Axes of rounds, of shares and of numbers of agents."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

# Numbers of agents are ordered, so their colours are too; the ends, yellow and almost black, are left out.
SIZES = mpl.colormaps["viridis_r"]
MOVES = 0.005  # what a reader sees of a share
FEWEST_ROUNDS = 10.0
MANY_TIMES = 8.0
LABELS = {20.0: (1, 2, 5), 200.0: (1, 3), np.inf: (1,)}  # in a decade, for smaller ratios of the ends


def size_colours(number: int) -> list[tuple[float, float, float, float]]:
    """A colour for each of so many numbers of agents, from light for the smallest to dark."""
    return [SIZES((k + 1) / (number + 1)) for k in range(number)]


def size_label(n_agents: int | np.integer) -> str:
    """A number of agents as legends have it."""
    return f"N = {n_agents:,}"


def last_change(rounds: np.ndarray, curves: np.ndarray) -> float:
    """The round after which no curve (rounds, …) moves visibly, with a margin."""
    if not rounds.size:
        return 0.0
    moving = (np.abs(curves - curves[-1]) > MOVES).reshape(len(curves), -1).any(1)
    last = rounds[moving.nonzero()[0].max(initial=0)]
    return float(min(rounds[-1], max(FEWEST_ROUNDS, 1.15 * last)))


def whole_ticks(*axes: Axis) -> None:
    """Ticks at whole numbers only, even if there is no room for two."""
    for axis in axes:
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def whole_bins(numbers: np.ndarray, most: int) -> np.ndarray:
    """Edges of bins around whole numbers, each of as many as leave at most so many bins."""
    first, last = (np.floor(numbers.min()), np.ceil(numbers.max())) if numbers.size else (0, 0)
    width = max(1, int(np.ceil((last - first + 1) / most)))
    return np.arange(first, last + width + 1, width) - 0.5


def plain_log(axis: Axis, ratio: float | None = None) -> None:
    """Ticks of a logarithmic axis in plain digits, also within decades where the ends differ by this ratio or less.

    Default: a fifth of the ratio of the ends that are shown now.
    """
    low, high = sorted(axis.get_view_interval())
    ratio = high / low / 5 if ratio is None else ratio
    axis.set_major_locator(LogLocator(subs=next(labels for most, labels in LABELS.items() if ratio < most)))
    axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axis.set_minor_formatter(NullFormatter())


def show_rounds(axes: Axes, last: float) -> None:
    """The axis of rounds from 0 to the last, or further where these axes already show more; before drawing."""
    axes.set_xlabel("population round")
    if isinstance(ticks := axes.xaxis.get_major_locator(), MaxNLocator):
        ticks.set_params(integer=True, min_n_ticks=1)
    automatic = axes.get_autoscalex_on()
    if last > 0 and not (automatic and axes.has_data()):
        axes.set_xlim(0, last if automatic else max(last, axes.get_xlim()[1]))


def show_shares(axes: Axes, ylabel: str, **labels: str) -> None:
    """The vertical axis of a share or a fraction, which shows lines at 0 and 1; and other labels."""
    axes.set(ylim=(-0.03, 1.03), ylabel=ylabel, **labels)


def show_sizes(axes: Axes, sizes: Sequence[int] | np.ndarray, share: str = "", *, logarithmic: bool = False) -> None:
    """The axis of numbers of agents: plain digits, and logarithmic where they differ by much, or always.

    The vertical axis is that of a share if it is named.
    """
    if share:
        show_shares(axes, share)
    axes.set_xlabel("number of agents N")
    ratio = max(sizes) / min(sizes)
    if ratio == 1 and not logarithmic:
        axes.set_xticks([sizes[0]])
    elif ratio < MANY_TIMES and not logarithmic:
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=1))
    else:
        axes.set_xscale("log")
        if not np.isfinite(axes.dataLim.minposx):  # nothing is drawn, and a logarithmic axis needs limits
            axes.set_xlim(min(sizes), max(sizes))
        plain_log(axes.xaxis, ratio)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
