"""Solutions of the rate equation: word shares by time."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.registry import draws
from meanfield._plot.words import words_in


@draws("solution", view="word_share")
def word_share(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Word shares by population round; several starting compositions share the words' colours."""
    for number, word in enumerate(words_in(part)):
        share = part["word_share"].isel(word=number)
        others = [dim for dim in share.dims if dim != "time"]
        curves = share.stack(curve=others).transpose("time", "curve") if others else share
        lines = axes.plot(part["round"], curves, **{"color": colours[word], **style})
        lines[0].set_label(word)
    axes.set_xlabel("population round")
    axes.set_ylabel("word share")
    axes.set_ylim(-0.03, 1.03)
