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


@draws("winners", view="share", by=())
def share(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of runs that agree on each word, with Wilson intervals; conditions side by side."""
    (dim,) = part["word"].dims
    several = len({*part["options"].values}) > 1
    conditions = [
        f"{model_name(str(model))}, {_words(options) if several else ''}H = {length}, N = {size}: {runs} runs"
        for model, options, length, size, runs in zip(
            *(part[name].values for name in ("model", "options", "memory_length", "n_agents", "runs")), strict=True
        )
    ]
    names = list(dict.fromkeys(conditions))
    words = sorted({*part["word"].values.astype(str)})
    width = WIDTH / len(names)
    for place, name in enumerate(names):
        one = part.isel({dim: np.array(conditions) == name})
        x = np.array([words.index(str(word)) for word in one["word"].values]) + (place - (len(names) - 1) / 2) * width
        axes.bar(x, one["share"], **{"width": width, "color": PALETTE[place % len(PALETTE)], "label": name, **style})
        error_bars(axes, x, one["share"], one["low"], one["high"], fmt="none", ecolor="0.2", elinewidth=0.8)
    axes.set_xticks(range(len(words)), words)
    axes.set_xlabel("word")
    show_shares(axes, "share of runs that agree on the word")


def _words(options: str) -> str:
    return f"W = {options.count('_') + 1}, "
