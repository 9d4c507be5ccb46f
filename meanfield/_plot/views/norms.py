"""The emergence of norms over time, by theory and in simulations."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.registry import draws
from meanfield._plot.scales import show_shares, size_colours, size_label
from meanfield._plot.size_curves import along_sizes
from meanfield._plot.views.comparisons import error

EVENTS = {"thoughts": "#56b4e9", "conflicts": "#d55e00", "chats": "#009e73"}
ACCEPTED = {"accepted": "#0072b2", "complying": "#e69f00"}
REACHED = {"reached": "#009e73", "informed": "#cc79a7"}
STANDARDS = {"for": "-", "against": ":"}
MIDDLE = (0.25, 0.75)
BY = ("behaviour", "n_agents")


@draws(
    "norm_emergence",
    "norm_simulation",
    view="shares",
    by=BY,
    reads="time: time; standard: standard; time standard ...: accepted complying",
)
def shares(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Shares of agents that accept and that comply with each standard; of several runs mean and middle half."""
    _shares(axes, part, ACCEPTED, **style)


@draws(
    "norm_emergence",
    "norm_simulation",
    view="reached",
    by=BY,
    reads="time: time; standard: standard; time standard ...: reached informed",
)
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
