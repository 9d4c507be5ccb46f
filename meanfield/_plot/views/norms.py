"""The emergence of norms over time, by theory and in simulations, and in a society event by event."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.intervals import name_rows
from meanfield._plot.registry import draws
from meanfield._plot.scales import show_shares, size_colours, size_label
from meanfield._plot.size_curves import along_sizes
from meanfield._plot.views.comparisons import error
from meanfield._plot.words import PALETTE

EVENTS = {"thoughts": "#56b4e9", "conflicts": "#d55e00", "chats": "#009e73"}
ACCEPTED = {"accepted": "#0072b2", "complying": "#e69f00"}
REACHED = {"reached": "#009e73", "informed": "#cc79a7"}
STANDARDS = {"for": "-", "against": ":"}
MIDDLE = (0.25, 0.75)
BY = ("behaviour", "n_agents")
SEEN = {"conflicts": "conflict", "thoughts": "thought", "chats": "chat"}
ALONE = ("plan", "synthesis")
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
    for k, behaviour in enumerate(behaviours):
        so_far = (part[name].sel(behaviour=behaviour).values for name in SEEN)
        places = [time[np.diff(number, prepend=0) > 0] for number in so_far]
        rows = np.arange(len(SEEN)) + (k - (len(behaviours) - 1) / 2) * height
        colour = style.get("color", PALETTE[k % len(PALETTE)])
        axes.eventplot(places, lineoffsets=rows, **{"linelengths": height, **style, "color": colour})
        axes.plot([], [], color=colour, label=behaviour)
    alone = [time[part["what"].values == what] for what in ALONE]
    look = {"color": "black", "linelengths": LENGTH, **style}
    axes.eventplot(alone, lineoffsets=len(SEEN) + np.arange(len(ALONE)), **look)
    some = [*(part[name].any() for name in SEEN), *map(len, alone)]
    names = zip([*SEEN.values(), *ALONE], some, strict=True)
    name_rows(axes, [name if found else f"{name} (none)" for name, found in names])
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
    _show_days(axes, part)


SHARES = "time: time; standard: standard; time standard ...: "
STEPS = "event: time; standard: standard; event standard: "  # of a society


@draws("norm_society", view="shares", by=("behaviour",), reads=f"{STEPS}accepted complying")
@draws("norm_emergence", "norm_simulation", view="shares", by=BY, reads=f"{SHARES}accepted complying")
def shares(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Shares of agents that accept and that comply with each standard; of several runs mean and middle half."""
    _shares(axes, part, ACCEPTED, **style)


@draws("norm_society", view="reached", by=("behaviour",), reads=f"{STEPS}reached informed")
@draws("norm_emergence", "norm_simulation", view="reached", by=BY, reads=f"{SHARES}reached informed")
def reached(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Shares of agents that hold each standard, as such or in an abstract norm, and that only know of it."""
    _shares(axes, part, REACHED, **style)


@draws(
    "norm_emergence", "norm_simulation", view="events", by=BY, reads="time: time; time ...: thoughts conflicts chats"
)
def events(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Conflicts, thoughts and chats per agent and day; of several runs mean and middle half."""
    for name, colour in EVENTS.items():
        draw_curve(axes, part[name], **{"color": colour, "label": name, **style})
    _show_days(axes, part)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("events per agent and day")


def _shares(axes: Axes, part: xr.Dataset, names: dict[str, str], **style: Any) -> None:
    several = part.sizes["standard"] > 1
    if "event" in part["time"].dims:
        style = {"drawstyle": "steps-post", **style}
    for standard in part["standard"].values:
        one = part.sel(standard=standard)
        for name, colour in names.items():
            look = {"color": colour, "linestyle": STANDARDS[str(standard)] if several else "-"}
            draw_curve(axes, one[name], **{**look, "label": f"{name}, {standard}" if several else name, **style})
    _show_days(axes, part)
    show_shares(axes, "share of agents")


def draw_curve(axes: Axes, values: xr.DataArray, **style: Any) -> None:
    """A line over time; of several runs the mean, and a band of their middle half."""
    mean = values.mean("run") if "run" in values.dims else values
    (line,) = axes.plot(mean["time"], mean, **style)
    if "run" in values.dims:
        middle = np.quantile(values.transpose("run", "time").values, MIDDLE, axis=0)
        axes.fill_between(values["time"], *middle, color=line.get_color(), alpha=0.2, linewidth=0)


def _show_days(axes: Axes, part: xr.Dataset) -> None:
    axes.set_xlim(0, float(part["time"].max()))
    axes.set_xlabel("day")


@draws(
    "norm_comparison",
    view="curves",
    by=("observable",),
    reads="n_agents: n_agents; time: time theory; n_agents time: simulated band; : observable",
)
def curves(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """A simulated observable with its confidence band for each number of agents, and the rate equation, dashed."""
    mean, band = (along_sizes(part[name]).transpose("n_agents", "time") for name in ("simulated", "band"))
    of_encounters = str(part["observable"].item()).endswith("an encounter")
    for one, half, size, colour in zip(mean, band, mean["n_agents"].values, size_colours(len(mean)), strict=True):
        (line,) = axes.plot(one["time"], one, **{"color": colour, "label": size_label(size), **style})
        low, high = ((one + side * half).clip(0, None if of_encounters else 1) for side in (-1, 1))
        axes.fill_between(one["time"], low, high, color=line.get_color(), alpha=0.25, linewidth=0)
    axes.plot(part["time"], part["theory"], "--", color="black", label="rate equation")
    _show_days(axes, part)
    axes.set_ylabel("per encounter" if of_encounters else "share of agents")


draws(
    "norm_comparison",
    view="error",
    by=("behaviour",),
    reads="n_agents: n_agents error error_uncertainty; : error_slope",
)(error)
