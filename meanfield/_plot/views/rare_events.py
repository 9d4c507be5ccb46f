"""Rare events: how long conventions live, and chances that were found by splitting."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from meanfield._plot.registry import draws
from meanfield._plot.words import NEUTRAL

LONGEST = 1e15  # lifetime that is drawn; beyond, the barrier in the legend tells enough
WIDTH = 36  # letters of a line in a legend
WIDE = 5  # ratio of chances, from which on their axis is logarithmic


@draws(
    "lifetime",
    view="size",
    reads="n_agents: n_agents; fixed_point: barrier reason; fixed_point n_agents: lifetime; "
    "fixed_point word: word_share?; word: word?; fixed_point state: composition?",
)
def lifetime_by_size(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The mean lifetime of each attractor against the number of agents, up to 1e15, and its barrier."""
    sizes = part["n_agents"].values
    for number in range(part.sizes["fixed_point"]):
        one = part.isel(fixed_point=number)
        place, word = _place(one)
        lifetimes, barrier, why = one["lifetime"].values, one["barrier"].item(), str(one["reason"].item())
        seen, beyond = lifetimes <= LONGEST, lifetimes > LONGEST
        kept = np.isinf(barrier)
        label = (
            f"{place}, never left"
            if kept
            else f"{place}, barrier {'unknown' if np.isnan(barrier) else f'{barrier:.3g}'}"
        )
        if beyond.any() and not kept:
            label += f"\nbeyond {LONGEST:g} from N = {sizes[beyond].min():,} on"
        if kept or np.isnan(lifetimes).any():
            label += f"\nnot drawn{f': {why}' if why else ''}"
        label = "\n".join(textwrap.fill(line, WIDTH) for line in label.split("\n"))
        look = {"color": colours.get(word, f"C{number}"), "marker": ".", "label": label, **style}
        axes.plot(sizes[seen], lifetimes[seen], **look)
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("number of agents N")
    units = part["lifetime"].attrs["units"]
    axes.set_ylabel("mean lifetime" if units == "1" else f"mean lifetime ({units})")


def _place(attractor: xr.Dataset) -> tuple[str, str]:
    """Where the attractor is, in a few words, and the word that most say there."""
    if "word_share" not in attractor:
        state = str(attractor["state"].values[attractor["composition"].argmax("state").item()])
        return f"most in {state}", ""
    share = attractor["word_share"]
    if share.isnull().all():
        return f"attractor {attractor['fixed_point'].item()}", ""
    most = share.argmax("word").item()
    word = str(share["word"].values[most])
    return f"{word} {share.values[most]:.3g}", word


@draws("rare_event", view="estimates", reads="replication: estimate; bound=low,high: interval; : probability word")
def estimates(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The chance in each replication, their mean, and its interval; replications without the event are told."""
    found = part["estimate"].values
    drawn, probability = found > 0, part["probability"].item()
    axes.plot(
        np.flatnonzero(drawn) + 1, found[drawn], **{"linestyle": "none", "marker": "o", "label": "replication", **style}
    )
    if probability > 0:
        axes.axhline(probability, color=NEUTRAL, label=f"mean {probability:.3g}")
        low, high = part["interval"].values
        axes.axhspan(low, high, color=NEUTRAL, alpha=0.15, label=str(part["interval"].attrs["long_name"]))
        if drawn.any() and found[drawn].max() > WIDE * found[drawn].min():
            axes.set_yscale("log")
    if not drawn.all():
        axes.plot([], [], " ", label=f"{np.count_nonzero(~drawn)} of {len(found)} without the event")
    axes.set_xlabel("replication")
    axes.set_ylabel(f"chance to end at {part['word'].item()}")
    axes.legend()
