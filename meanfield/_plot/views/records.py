"""Records of measurements: what a language model gives to the words, in each order of presentation."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.registry import draws
from meanfield._plot.scales import show_shares
from meanfield._plot.words import PALETTE, words_in

EXTRACT = "policy_extraction.extract"


@draws("record", view="captured_mass")
@draws("policy", view="captured_mass", needs={"captured_mass": EXTRACT})
def captured_mass(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The probability of all words together in each memory state, for each order of the words in the prompt."""
    for k, label in enumerate(part["order_label"].values):
        look = {"color": PALETTE[k % len(PALETTE)], "marker": ".", "linestyle": "none", "label": str(label), **style}
        axes.plot(part["state"], part["captured_mass"].isel(order=k), **look)
    axes.set_xlabel("memory state")
    show_shares(axes, "captured mass, T = 1")


@draws("record", view="log_probability")
@draws("policy", view="log_probability", needs={"log_probability": EXTRACT})
def log_probability(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The log-probability of each word in each memory state, orders averaged; open where only bounded from above."""
    for number, word in enumerate(words_in(part)):
        one = part.isel(word=number)
        value, bounded = one["log_probability"].mean("order").values, one["censored"].any("order").values
        for chosen, fill in ((~bounded, "full"), (bounded, "none")):
            label = {"label": word} if fill == "full" or bounded.all() else {}
            look = {"color": colours[word], "marker": "o", "markersize": 4, "linestyle": "none", "fillstyle": fill}
            axes.plot(part["state"].values[chosen], value[chosen], **{**look, **label, **style})
    axes.set_xlabel("memory state")
    axes.set_ylabel("log-probability, T = 1 (nat)")
