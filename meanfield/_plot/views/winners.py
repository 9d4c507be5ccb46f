"""Which words win in populations that were really run."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.intervals import error_bars
from meanfield._plot.registry import draws
from meanfield._plot.scales import show_shares
from meanfield._plot.words import PALETTE, model_name

WIDTH = 0.8
MOST_NAMED = 3  # words in a label


@draws("winners", view="share", by=(), reads="index*: model options memory_length n_agents runs word share low high")
def share(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of runs that agree on each word, with Wilson intervals; conditions side by side."""
    (dim,) = part["word"].dims
    columns = ("model", "options", "memory_length", "n_agents", "runs")
    conditions = list(zip(*(part[name].values.tolist() for name in columns), strict=True))
    names = list(dict.fromkeys(conditions))
    if not names:
        axes.plot([], [], " ", label="no run agrees on a word")
        return
    several = len({*part["options"].values}) > 1
    words = sorted({*part["word"].values.astype(str)})
    width = WIDTH / len(names)
    for place, name in enumerate(names):
        one = part.isel({dim: [condition == name for condition in conditions]})
        model, options, length, size, runs = name
        label = f"{model_name(model)}, {_words(options) if several else ''}H = {length}, N = {size}: {runs} runs"
        x = np.array([words.index(str(word)) for word in one["word"].values]) + (place - (len(names) - 1) / 2) * width
        axes.bar(x, one["share"], **{"width": width, "color": PALETTE[place % len(PALETTE)], "label": label, **style})
        error_bars(axes, x, one["share"], one["low"], one["high"], fmt="none", ecolor="0.2", elinewidth=0.8)
    axes.set_xticks(range(len(words)), words)
    axes.set_xlabel("word")
    show_shares(axes, "share of runs that agree on the word")


def _words(options: str) -> str:
    words = options.split("_")
    return f"{{{', '.join(words)}}}, " if len(words) <= MOST_NAMED else f"W = {len(words)}, "
