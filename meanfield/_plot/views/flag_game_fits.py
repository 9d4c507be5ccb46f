"""Fits of the flag game's Mechanism 1 and of the copying process to endpoints and accuracies."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter
from scipy.special import ndtri

from meanfield._plot.endpoints import draw_fractions, endpoint_name
from meanfield._plot.intervals import error_bars, forest, limits_of, name_rows, wilson
from meanfield._plot.registry import draws
from meanfield._plot.scales import show_shares, show_sizes, whole_ticks
from meanfield._plot.words import NEUTRAL, PALETTE

FITTED, PAPER, MEASURED = PALETTE[0], PALETTE[1], "black"
LEVEL = 0.95
WIDER = 3.0  # limits of parameters, in the largest estimate


@draws(
    "mechanism1_fit",
    view="polarization",
    reads="n_agents: n_agents seeds; n_agents endpoint: measured fitted paper; endpoint=polarization: endpoint",
)
def polarization(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The fraction of runs that end polarized against N: measured, fitted, and by the paper's parameters."""
    endpoint(axes, part.sel(endpoint="polarization"), colours, **style)
    axes.set_ylabel("fraction of polarized ends")


@draws(
    "mechanism1_fit",
    view="accuracy",
    reads="n_agents: n_agents measured_accuracy measured_accuracy_error fitted_accuracy paper_accuracy",
)
def accuracy(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Collective accuracy against N: measured, fitted, and by the paper's parameters."""
    measured, error = part["measured_accuracy"].values, part["measured_accuracy_error"].values
    bars = ndtri((1 + LEVEL) / 2) * error
    _against_size(axes, part, part["fitted_accuracy"], part["paper_accuracy"], **style)
    error_bars(axes, part["n_agents"], measured, measured - bars, measured + bars, color=MEASURED, label=_measured())
    show_shares(axes, "collective mean accuracy")


@draws("mechanism1_fit", view="endpoints", by=("endpoint",), reads="n_agents: n_agents seeds measured fitted paper")
def endpoint(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The fraction of runs with an endpoint against N: measured, fitted, and by the paper's parameters."""
    low, high = wilson(part["measured"].values, part["seeds"].values, LEVEL)
    _against_size(axes, part, part["fitted"], part["paper"], **style)
    error_bars(axes, part["n_agents"], part["measured"], low, high, color=MEASURED, label=_measured())
    show_shares(axes, "fraction of runs")


def _against_size(axes: Axes, part: xr.Dataset, fitted: xr.DataArray, paper: xr.DataArray, **style: Any) -> None:
    sizes = part["n_agents"].values
    axes.plot(sizes, fitted, **{"color": FITTED, "label": "fitted", **style})
    axes.plot(sizes, paper, color=PAPER, linestyle="--", label="parameters of [002]")
    show_sizes(axes, sizes)


def _measured() -> str:
    return f"measured, {100 * LEVEL:g} %"


@draws(
    "mechanism1_fit",
    view="intervals",
    reads="parameter: parameter estimate free identified bootstrap_standard_error; parameter bound: interval; "
    "bound=low,high: bound",
)
def intervals(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """A row for each parameter: fitted with its interval and the bootstrap's, held, or not determined."""
    free, known = part["free"].values.astype(bool), part["identified"].values.astype(bool)
    estimate = part["estimate"].values
    low, high = part["interval"].sel(bound=["low", "high"]).transpose("bound", "parameter").values
    rows = np.arange(len(estimate))
    axes.set_xscale("symlog", linthresh=1)
    limits = _limits(estimate, low[known], high[known])
    forest(axes, rows[known], estimate[known], low[known], high[known], limits, **{"color": FITTED, **style})
    axes.plot(estimate[~known], rows[~known], "o", color=NEUTRAL, fillstyle="none")
    level = part.attrs["option_level"]
    bars = ndtri((1 + level) / 2) * part["bootstrap_standard_error"].values
    if np.isfinite(bars).any():
        forest(axes, rows + 0.3, estimate, estimate - bars, estimate + bars, limits, color=PAPER, marker="")
    for row in rows[~known].tolist():
        _remark(axes, row, "not determined" if free[row] else "held")
    name_rows(axes, [str(name) for name in part["parameter"].values])
    axes.set_xlim(limits)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_xlabel(f"{100 * level:g} % interval{'; bootstrap below' if np.isfinite(bars).any() else ''}")


def _limits(estimate: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    """Limits of a scale that is logarithmic beyond ±1."""
    left, right = limits_of(estimate, low, high)
    return (min(WIDER * left, -0.1) if left < -1 else left), WIDER * right


def _remark(axes: Axes, row: int, text: str) -> None:
    axes.text(1.02, row, text, va="center", color=NEUTRAL, transform=axes.get_yaxis_transform())


@draws("mechanism1_fit", view="directions", reads="direction: direction direction_error direction_determined")
def directions(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The standard error along each direction in the space of free parameters, from the best to the least known."""
    error, known = part["direction_error"].values, part["direction_determined"].values.astype(bool)
    rank = part["direction"].values + 1
    finite = np.isfinite(error)
    for chosen, label, look in (
        (known, "determined", {"color": FITTED}),
        (~known & finite, "not determined", {"color": NEUTRAL, "fillstyle": "none"}),
    ):
        axes.plot(rank[chosen], error[chosen], **{"marker": "o", "linestyle": "none", "label": label, **look, **style})
    if not finite.all():
        top = np.full((~finite).sum(), 1.0)
        look = {"color": NEUTRAL, "clip_on": False, "transform": axes.get_xaxis_transform()}
        axes.plot(rank[~finite], top, "^", label="no curvature", **look)
    axes.axhline(1, color=NEUTRAL, linestyle=":")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    whole_ticks(axes.xaxis)
    axes.set_xlabel("direction, from the best known")
    axes.set_ylabel("standard error along it")


@draws(
    "mechanism1_comparison",
    view="quantities",
    by=("quantity",),
    reads="n_agents: n_agents measured simulated simulated_error inside; "
    "n_agents bound: interval; bound=low,high: bound; "
    ": quantity",
)
def quantity(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """A measured endpoint or accuracy with its interval, and the simulated one with its standard error, against N."""
    sizes, simulated, error = part["n_agents"].values, part["simulated"].values, part["simulated_error"].values
    axes.plot(sizes, simulated, **{"color": FITTED, "label": "simulated, ± SE", **style})
    axes.fill_between(sizes, simulated - error, simulated + error, color=FITTED, alpha=0.25, linewidth=0)
    low, high = part["interval"].sel(bound=["low", "high"]).transpose("bound", "n_agents").values
    outside = part["inside"].values == 0
    label = f"measured, {100 * part.attrs['option_level']:g} %"
    for chosen, text, inside in ((~outside, label, MEASURED), (outside, "simulated lies outside", "white")):
        if chosen.any():
            shown = [values[chosen] for values in (sizes, part["measured"].values, low, high)]
            error_bars(axes, *shown, color=MEASURED, markerfacecolor=inside, label=text)
    show_sizes(axes, sizes)
    show_shares(axes, "collective mean accuracy" if part["quantity"] == "accuracy" else "fraction of runs")


@draws("copying_fit", view="endpoints", reads="n_agents: n_agents; n_agents endpoint: fitted; endpoint: endpoint")
def copying_endpoints(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Fractions of runs with each endpoint against N by the fitted copying process."""
    fractions = {str(name): part["fitted"].sel(endpoint=name).values for name in part["endpoint"].values}
    draw_fractions(axes, part["n_agents"].values, fractions, None, **style)


@draws("copying_fit", view="parameters", reads="parameter: parameter estimate standard_error")
def copying_parameters(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Estimates of the copying process with their standard errors."""
    estimate, error = part["estimate"].values, part["standard_error"].values
    low, high = estimate - error, estimate + error
    limits = limits_of(low, high, np.zeros(1))
    forest(axes, np.arange(len(estimate)), estimate, low, high, limits, **{"color": FITTED, **style})
    name_rows(axes, [endpoint_name(name) for name in part["parameter"].values])
    axes.set_xlim(limits)
    axes.set_xlabel("estimate ± standard error")
