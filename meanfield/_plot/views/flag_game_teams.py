"""Accuracies and endpoints of flag games, by number of agents and by composition of the team."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.endpoints import draw_fractions, endpoint_name
from meanfield._plot.intervals import error_bars, forest, name_rows
from meanfield._plot.registry import draws
from meanfield._plot.scales import show_shares, show_sizes, whole_ticks
from meanfield._plot.words import NEUTRAL, PALETTE, model_name
from meanfield.toolbox._errors import InputError

PREDICTION, MEASUREMENT = "black", "#d55e00"
ACCURACIES = {
    "initial_accuracy": "isolated agents",
    "majority_vote_accuracy": "their vote",
    "collective_accuracy": "agents in the end",
    "final_vote_accuracy": "their vote in the end",
}
UPLIFT = (("initial_accuracy", NEUTRAL, "initial"), ("collective_accuracy", PALETTE[0], "collective"))
BINS = np.linspace(0, 1, 21)


@draws(
    "mechanism1_simulation",
    view="endpoints",
    reads="endpoint: endpoint; endpoint ...: endpoint_fraction; endpoint bound ...: endpoint_interval; "
    "bound=low,high: bound; ...: n_agents?",
)
@draws(
    "flag_game_accuracy",
    view="endpoints",
    reads="endpoint: endpoint; endpoint ...: endpoint_fraction; endpoint bound ...: endpoint_interval; "
    "bound=low,high: bound; ...: n_agents?",
)
def endpoints(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Fractions of runs by endpoint with Wilson intervals, against N where there are several sizes."""
    interval = part["endpoint_interval"].sel(bound=["low", "high"])
    if "n_agents" in part.dims:
        names = [str(name) for name in part["endpoint"].values]
        fractions = {name: part["endpoint_fraction"].sel(endpoint=name).values for name in names}
        ends = {name: interval.sel(endpoint=name).transpose("n_agents", "bound").values for name in names}
        draw_fractions(axes, part["n_agents"].values, fractions, ends, **style)
        return
    low, high = interval.transpose("bound", "endpoint").values
    _rows(axes, [endpoint_name(name) for name in part["endpoint"].values], part["endpoint_fraction"], low, high, style)
    axes.set_xlabel("fraction of runs")


@draws(
    "flag_game_accuracy",
    view="accuracy",
    reads=f"...: n_agents? {' '.join(f'{name} {name}_se' for name in ACCURACIES)}",
)
def accuracies(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Accuracies of agents and of their votes, isolated and in the end, with standard errors."""
    value = np.stack([part[name].values for name in ACCURACIES])
    error = np.stack([part[f"{name}_se"].values for name in ACCURACIES])
    if "n_agents" not in part.dims:
        _rows(axes, list(ACCURACIES.values()), value, value - error, value + error, style)
        axes.set_xlabel("accuracy ± standard error")
        return
    sizes = part["n_agents"].values
    for k, (mean, se, label) in enumerate(zip(value, error, ACCURACIES.values(), strict=True)):
        look = {"color": PALETTE[k], "label": label, "linestyle": "-", **style}
        error_bars(axes, sizes, mean, mean - se, mean + se, **look)
    show_sizes(axes, sizes)
    show_shares(axes, "accuracy, ± SE")


@draws(
    "flag_game_accuracy",
    view="uplift",
    reads="n_agents: n_agents initial_accuracy initial_accuracy_se collective_accuracy collective_accuracy_se",
)
def social_uplift(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Mean accuracy of agents, isolated and in the end, against N with standard errors; the uplift is shaded."""
    if "n_agents" not in part.coords:
        raise InputError("result has no n_agents: expected games that all agents decide, for this view")
    sizes = np.atleast_1d(part["n_agents"].values)
    means = []
    for name, colour, label in UPLIFT:
        mean, error = (np.atleast_1d(part[one].values) for one in (name, f"{name}_se"))
        look = {"color": colour, "label": label, "linestyle": "-", **style}
        error_bars(axes, sizes, mean, mean - error, mean + error, **look)
        means.append(mean)
    axes.fill_between(sizes, *means, color=PALETTE[0], alpha=0.15, linewidth=0, label="social uplift")
    show_sizes(axes, sizes)
    show_shares(axes, "mean accuracy, ± SE")


def _rows(
    axes: Axes, names: list[str], value: np.ndarray | xr.DataArray, low: np.ndarray, high: np.ndarray, style: dict
) -> None:
    look = {"color": PALETTE[0], **style}
    forest(axes, np.arange(len(names)), np.asarray(value), low, high, (0.0, 1.0), **look)
    name_rows(axes, names)
    axes.set_xlim(-0.03, 1.03)


@draws("mechanism1_simulation", view="accuracy", reads="n_agents: n_agents collective_accuracy collective_accuracy_se")
def simulated_accuracy(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Collective accuracy against N with standard errors."""
    value, error = (np.atleast_1d(part[name].values) for name in ("collective_accuracy", "collective_accuracy_se"))
    sizes = np.atleast_1d(part["n_agents"].values)
    error_bars(axes, sizes, value, value - error, value + error, **{"linestyle": "-", "color": PALETTE[0], **style})
    show_sizes(axes, sizes)
    show_shares(axes, "collective accuracy, ± SE")


@draws("mechanism1_simulation", view="votes", by=("n_agents",), reads="run: truth_share")
def votes(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The distribution over runs of the share that votes for the truth."""
    share = part["truth_share"].values
    weight = np.full(share.shape, 1 / share.size)
    axes.hist(share, BINS, weights=weight, **{"color": PALETTE[0], **style})
    axes.set_xlim(-0.03, 1.03)
    axes.set_xlabel("share of votes for the truth")
    axes.set_ylabel("fraction of runs")


@draws(
    "team_composition",
    view="accuracy",
    by=("uptake",),
    reads="number: number initial_accuracy collective_accuracy collective_accuracy_se",
)
@draws(
    "team_composition_comparison",
    view="accuracy",
    by=("uptake",),
    reads="number: number initial_accuracy collective_accuracy collective_accuracy_se "
    "measured measured_se measured_initial",
)
def composition(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Collective accuracy by the number of the second model: predicted, and measured if the result has it."""
    number, predicted = part["number"].values, part["collective_accuracy"].values
    error = 2 * part["collective_accuracy_se"].values
    (line,) = axes.plot(number, predicted, **{"color": PREDICTION, "label": "predicted, ± 2 SE", **style})
    shade = {"color": line.get_color(), "alpha": 0.15, "linewidth": 0}
    axes.fill_between(number, predicted - error, predicted + error, **shade)
    before = {"color": line.get_color(), "linestyle": ":", "label": "before talk"}
    axes.plot(number, part["initial_accuracy"], **before)
    if "measured" in part:
        measured, se = part["measured"].values, part["measured_se"].values
        error_bars(axes, number, measured, measured - se, measured + se, color=MEASUREMENT, label="measured, ± SE")
        look = {"markersize": 4, "fillstyle": "none", "color": MEASUREMENT}
        axes.plot(number, part["measured_initial"], "o", **look)
    _show_number(axes, part)
    show_shares(axes, "collective mean accuracy")


@draws(
    "team_composition",
    "team_composition_comparison",
    view="uplift",
    by=("uptake",),
    reads="number: number social_uplift social_uplift_se",
)
def uplift(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Predicted collective less initial accuracy by the number of the second model, with standard errors."""
    value, error = part["social_uplift"].values, part["social_uplift_se"].values
    look = {"linestyle": "-", "color": PREDICTION, **style}
    error_bars(axes, part["number"].values, value, value - error, value + error, **look)
    axes.axhline(0, color="0.6", linewidth=0.8)
    _show_number(axes, part)
    axes.set_ylabel("social uplift ± SE")


def _show_number(axes: Axes, part: xr.Dataset) -> None:
    second = model_name(list(part.attrs["models"])[1])
    whole_ticks(axes.xaxis)
    axes.set_xlabel(f"{second} among {part.attrs['option_n_agents']} agents")


@draws(
    "team_composition_comparison",
    view="mixed_gain",
    reads="uptake: uptake mixed_gain mixed_gain_se measured_mixed_gain measured_mixed_gain_se",
)
def mixed_gain(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Gain in mean accuracy of mixed over pure teams by uptake, predicted and measured, with standard errors."""
    uptake = np.atleast_1d(part["uptake"].values)
    for prefix, colour, label in (("", PREDICTION, "predicted"), ("measured_", MEASUREMENT, "measured")):
        gain, error = (np.atleast_1d(part[f"{prefix}mixed_gain{end}"].values) for end in ("", "_se"))
        look = {"linestyle": "-", "color": colour, "label": f"{label}, ± SE", **style}
        error_bars(axes, uptake, gain, gain - error, gain + error, **look)
    axes.axhline(0, color="0.6", linewidth=0.8)
    axes.set_xlabel("uptake α")
    axes.set_ylabel("gain of mixed over pure teams")
