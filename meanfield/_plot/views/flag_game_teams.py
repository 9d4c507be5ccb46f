"""Accuracies and endpoints of flag games, by number of agents and by composition of the team."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.curves import curve
from meanfield._plot.intervals import error_bars, forest, name_rows
from meanfield._plot.registry import draws
from meanfield._plot.scales import show_shares, show_sizes, whole_ticks
from meanfield._plot.words import NEUTRAL, PALETTE, model_name
from meanfield.toolbox._errors import InputError

COLOURS = {
    "correct_consensus": "#0072b2",
    "wrong_consensus": "#d55e00",
    "polarization": "#e69f00",
    "fragmentation": "#999999",
}
PREDICTION, MEASUREMENT = "black", "#d55e00"
ACCURACIES = {
    "initial_accuracy": "isolated agents",
    "majority_vote_accuracy": "their vote",
    "collective_accuracy": "agents in the end",
    "final_vote_accuracy": "their vote in the end",
}
UPLIFT = {"initial_accuracy": (NEUTRAL, "initial"), "collective_accuracy": (PALETTE[0], "collective")}
BINS = np.linspace(0, 1, 21)


def endpoint_name(endpoint: object) -> str:
    """An endpoint, or another column, in words."""
    return str(endpoint).replace("_", " ")


@draws(
    "mechanism1_simulation flag_game_accuracy",
    "endpoints",
    "endpoint! ...: endpoint_fraction; endpoint bound=low,high ...: endpoint_interval; ...: n_agents?",
)
def endpoints(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Fractions of runs by endpoint with Wilson intervals, against N where there are several sizes."""
    names, fraction, interval = part["endpoint"].values, part["endpoint_fraction"], part["endpoint_interval"].values
    if "n_agents" not in part.dims:
        _rows(axes, [endpoint_name(name) for name in names], fraction, *interval.T, **style)
        axes.set_xlabel("fraction of runs")
        return
    for name, one, ends in zip(names, fraction.values, interval, strict=True):
        look = {"linestyle": "-", "color": COLOURS[str(name)], "label": endpoint_name(name), **style}
        error_bars(axes, part["n_agents"], one, *ends, **look)
    show_sizes(axes, part["n_agents"].values, "fraction of runs")


@draws("flag_game_accuracy", "accuracy", f"...: n_agents? {' '.join(f'{name} {name}_se' for name in ACCURACIES)}")
def accuracies(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Accuracies of agents and of their votes, isolated and in the end, with standard errors."""
    if "n_agents" not in part.dims:
        value, error = (np.stack([part[f"{name}{end}"].values for name in ACCURACIES]) for end in ("", "_se"))
        _rows(axes, list(ACCURACIES.values()), value, value - error, value + error, **style)
        axes.set_xlabel("accuracy ± standard error")
        return
    for k, (name, label) in enumerate(ACCURACIES.items()):
        look = {"color": PALETTE[k], "label": label, "linestyle": "-", **style}
        error_bars(axes, part["n_agents"], part[name], part[f"{name}_se"], **look)
    show_sizes(axes, part["n_agents"].values, "accuracy, ± SE")


@draws(
    "flag_game_accuracy",
    "uplift",
    "n_agents!: initial_accuracy initial_accuracy_se collective_accuracy collective_accuracy_se",
)
def social_uplift(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Mean accuracy of agents, isolated and in the end, against N with standard errors; the uplift is shaded."""
    if "n_agents" not in part.coords:
        raise InputError("result has no n_agents: expected games that all agents decide, for this view")
    sizes = part["n_agents"].values
    for name, (colour, label) in UPLIFT.items():
        look = {"color": colour, "label": label, "linestyle": "-", **style}
        error_bars(axes, sizes, part[name], part[f"{name}_se"], **look)
    shade = {"color": PALETTE[0], "alpha": 0.15, "linewidth": 0, "label": "social uplift"}
    axes.fill_between(sizes, *(part[name] for name in UPLIFT), **shade)
    show_sizes(axes, sizes, "mean accuracy, ± SE")


def _rows(axes: Axes, names: Sequence[str], value: Any, low: np.ndarray, high: np.ndarray, **style: Any) -> None:
    forest(axes, range(len(names)), value, low, high, (0.0, 1.0), **{"color": PALETTE[0], **style})
    name_rows(axes, names, xlim=(-0.03, 1.03))


@draws("mechanism1_simulation", "accuracy", "n_agents!: collective_accuracy collective_accuracy_se")
def simulated_accuracy(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Collective accuracy against N with standard errors."""
    value, error = part["collective_accuracy"], part["collective_accuracy_se"]
    error_bars(axes, part["n_agents"], value, error, **{"linestyle": "-", "color": PALETTE[0], **style})
    show_sizes(axes, part["n_agents"].values, "collective accuracy, ± SE")


@draws("mechanism1_simulation", "votes", "run: truth_share", by=("n_agents",))
def votes(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The distribution over runs of the share that votes for the truth."""
    share = part["truth_share"].values
    axes.hist(share, BINS, weights=np.full(share.shape, 1 / share.size), **{"color": PALETTE[0], **style})
    axes.set(xlim=(-0.03, 1.03), xlabel="share of votes for the truth", ylabel="fraction of runs")


PREDICTED = "number!: initial_accuracy collective_accuracy collective_accuracy_se"


@draws("team_composition", "accuracy", PREDICTED, by=("uptake",))
@draws("team_composition_comparison", "accuracy", f"{PREDICTED} measured measured_se measured_initial", by=("uptake",))
def composition(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Collective accuracy by the number of the second model: predicted, and measured if the result has it."""
    number, predicted, error = (part[name] for name in ("number", "collective_accuracy", "collective_accuracy_se"))
    look = {"color": PREDICTION, "label": "predicted, ± 2 SE", **style}
    line = curve(axes, number, predicted, (predicted - 2 * error, predicted + 2 * error), **look)
    axes.plot(number, part["initial_accuracy"], color=line.get_color(), linestyle=":", label="before talk")
    if "measured" in part:
        error_bars(axes, number, part["measured"], part["measured_se"], color=MEASUREMENT, label="measured, ± SE")
        axes.plot(number, part["measured_initial"], "o", markersize=4, fillstyle="none", color=MEASUREMENT)
    _show_number(axes, part)
    show_shares(axes, "collective mean accuracy")


@draws(
    "team_composition team_composition_comparison", "uplift", "number!: social_uplift social_uplift_se", by=("uptake",)
)
def uplift(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Predicted collective less initial accuracy by the number of the second model, with standard errors."""
    look = {"linestyle": "-", "color": PREDICTION, **style}
    error_bars(axes, part["number"], part["social_uplift"], part["social_uplift_se"], **look)
    axes.axhline(0, color="0.6", linewidth=0.8)
    _show_number(axes, part)
    axes.set_ylabel("social uplift ± SE")


def _show_number(axes: Axes, part: xr.Dataset) -> None:
    second = model_name(list(part.attrs["models"])[1])
    whole_ticks(axes.xaxis)
    axes.set_xlabel(f"{second} among {part.attrs['option_n_agents']} agents")


@draws(
    "team_composition_comparison",
    "mixed_gain",
    "uptake!: mixed_gain mixed_gain_se measured_mixed_gain measured_mixed_gain_se",
)
def mixed_gain(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Gain in mean accuracy of mixed over pure teams by uptake, predicted and measured, with standard errors."""
    for prefix, colour, label in (("", PREDICTION, "predicted"), ("measured_", MEASUREMENT, "measured")):
        gain, error = part[f"{prefix}mixed_gain"], part[f"{prefix}mixed_gain_se"]
        look = {"linestyle": "-", "color": colour, "label": f"{label}, ± SE", **style}
        error_bars(axes, part["uptake"], gain, error, **look)
    axes.axhline(0, color="0.6", linewidth=0.8)
    axes.set(xlabel="uptake α", ylabel="gain of mixed over pure teams")
