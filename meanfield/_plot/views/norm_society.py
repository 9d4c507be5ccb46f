"""A society of norms, event by event."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.intervals import name_rows
from meanfield._plot.registry import draws
from meanfield._plot.scales import whole_ticks
from meanfield._plot.views import norms
from meanfield._plot.words import PALETTE

SEEN = {"conflicts": "conflict", "thoughts": "thought", "chats": "chat"}
ALONE = {"plan": "plan", "synthesis": "synthesis"}
LENGTH = 0.8  # of all strokes in a row


@draws(
    "norm_society",
    view="timeline",
    by=(),
    reads="behaviour: behaviour; event: time what; behaviour event: conflicts thoughts chats",
)
def timeline(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """A stroke for each conflict, thought, chat, plan and synthesis; of several behaviours in colours."""
    part = part if "behaviour" in part.dims else part.expand_dims("behaviour")
    time, behaviours = part["time"].values, [str(name) for name in part["behaviour"].values]
    height = LENGTH / len(behaviours)
    there = np.zeros(len(SEEN), dtype=bool)
    for k, behaviour in enumerate(behaviours):
        places = [_times(part[name].sel(behaviour=behaviour).values, time) for name in SEEN]
        rows = np.arange(len(SEEN)) + (k - (len(behaviours) - 1) / 2) * height
        colour = style.get("color", PALETTE[k % len(PALETTE)])
        axes.eventplot(places, lineoffsets=rows, **{"linelengths": height, **style, "color": colour})
        axes.plot([], [], color=colour, label=behaviour)
        there |= [len(times) > 0 for times in places]
    alone = [time[part["what"].values == what] for what in ALONE]
    look = {"color": "black", "linelengths": LENGTH, **style}
    axes.eventplot(alone, lineoffsets=np.arange(len(SEEN), len(SEEN) + len(ALONE)), **look)
    some = [*there, *(len(times) > 0 for times in alone)]
    names = zip([*SEEN.values(), *ALONE.values()], some, strict=True)
    name_rows(axes, [name if found else f"{name} (none)" for name, found in names])
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
    _show_days(axes, time)


def _times(so_far: np.ndarray, time: np.ndarray) -> np.ndarray:
    """The times at which a number that is counted up grows."""
    return time[np.diff(so_far, prepend=0) > 0]


@draws(
    "norm_society",
    view="shares",
    by=("behaviour",),
    reads="event: time; standard: standard; event standard: accepted complying",
)
def shares(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Shares of agents that accept and that comply with each standard."""
    norms.shares(axes, part.swap_dims(event="time"), colours, **{"drawstyle": "steps-post", **style})


@draws(
    "norm_society",
    view="reached",
    by=("behaviour",),
    reads="event: time; standard: standard; event standard: reached informed",
)
def reached(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Shares of agents that hold each standard, as such or in an abstract norm, and that only know of it."""
    norms.reached(axes, part.swap_dims(event="time"), colours, **{"drawstyle": "steps-post", **style})


@draws("norm_society", view="unparsed", by=(), reads="operation: operation unparsed")
def unparsed(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Number of calls without a usable answer, by operation."""
    axes.barh(range(part.sizes["operation"]), part["unparsed"], **{"color": PALETTE[0], **style})
    name_rows(axes, [str(name).replace("_", " ") for name in part["operation"].values])
    whole_ticks(axes.xaxis)
    axes.set_xlim(0, max(1, 1.05 * part["unparsed"].max().item()))
    axes.set_xlabel(f"operations without a usable answer: {int(part['unparsed'].sum())}")


def _show_days(axes: Axes, time: np.ndarray) -> None:
    axes.set_xlim(0, float(time[-1]))
    axes.set_xlabel("day")
