"""Records of measurements: what a language model gives to the words, in each order of presentation."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from scipy.stats import binom

from meanfield._plot.registry import draws
from meanfield._plot.scales import show_shares, whole_ticks
from meanfield._plot.words import NEUTRAL, PALETTE, words_in

EXTRACT, MEASURE = "policy_extraction.extract", "policy_extraction.measure"
LEVELS = np.linspace(0, 1, 101)


@draws("record", view="captured_mass", reads="order: order_label; state: state; order state: captured_mass")
@draws(
    "policy",
    view="captured_mass",
    needs={"captured_mass": EXTRACT},
    reads="order: order_label; state: state; order state: captured_mass",
)
def captured_mass(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The probability of all words together in each memory state, for each order of the words in the prompt."""
    for k, label in enumerate(part["order_label"].values):
        look = {"color": PALETTE[k % len(PALETTE)], "marker": ".", "linestyle": "none", "label": str(label), **style}
        axes.plot(part["state"], part["captured_mass"].isel(order=k), **look)
    whole_ticks(axes.xaxis)
    axes.set_xlabel("memory state")
    show_shares(axes, "captured mass, T = 1")


@draws("record", view="log_probability", reads="state: state; order state word+: log_probability censored; word+: word")
@draws(
    "policy",
    view="log_probability",
    needs={"log_probability": EXTRACT},
    reads="state: state; order state word+: log_probability censored; word+: word",
)
def log_probability(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The log-probability of each word in each memory state, orders averaged; open where only bounded from above."""
    for number, word in enumerate(words_in(part)):
        one = part.isel(word=number)
        value, bounded = one["log_probability"].mean("order").values, one["censored"].any("order").values
        for chosen, fill in ((~bounded, "full"), (bounded, "none")):
            label = {"label": word} if fill == "full" or bounded.all() else {}
            look = {"color": colours[word], "marker": "o", "markersize": 4, "linestyle": "none", "fillstyle": fill}
            axes.plot(part["state"].values[chosen], value[chosen], **{**look, **label, **style})
    whole_ticks(axes.xaxis)
    axes.set_xlabel("memory state")
    axes.set_ylabel("log-probability, T = 1 (nat)")


@draws("policy", view="calibration", needs={"held_out_level": MEASURE}, reads="prediction*: held_out_level")
def calibration(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Memories that were predicted before they were asked: the part inside intervals of each level."""
    axes.plot([0, 1], [0, 1], color=NEUTRAL, linewidth=0.8)
    levels = np.sort(part["held_out_level"].values)
    if len(levels):
        look = {"color": PALETTE[0], "label": f"{len(levels)} predictions", **style}
        axes.plot(LEVELS, np.searchsorted(levels, LEVELS, side="right") / len(levels), **look)
        low, high = (binom.ppf(q, len(levels), LEVELS) / len(levels) for q in (0.025, 0.975))
        axes.fill_between(LEVELS, low, high, color=NEUTRAL, alpha=0.2, linewidth=0, label="95 % of right models")
    else:
        axes.plot([], [], " ", label="no predictions")
    axes.set_xlim(0, 1)
    axes.set_xlabel("level of the interval")
    show_shares(axes, "part of the answers inside")
