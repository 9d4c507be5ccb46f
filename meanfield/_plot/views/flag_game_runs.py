"""Forecasts of single runs of the flag game: endpoints against evidence, and scores of models."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.endpoints import COLOURS, endpoint_name
from meanfield._plot.intervals import forest, limits_of, name_rows
from meanfield._plot.registry import draws
from meanfield._plot.scales import show_shares
from meanfield._plot.words import PALETTE

TICKS = 1.06  # height of the first row of runs; the others are above it
APART = 0.05


@draws(
    "flag_run_evidence",
    view="endpoints",
    by=("model", "n_agents"),
    reads="evidence: evidence; evidence endpoint: probability; endpoint: endpoint; "
    "run*: run_evidence run_n_agents run_endpoint; : n_agents",
)
def endpoints(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The probability of each endpoint against the rival's share of the evidence; ticks are real runs with this N."""
    drawn = part["run_n_agents"].values == part["n_agents"].values
    for row, (name, colour) in enumerate(COLOURS.items()):
        if name not in part["endpoint"].values:
            continue
        curve = part["probability"].sel(endpoint=name)
        axes.plot(part["evidence"], curve, **{"color": colour, "label": endpoint_name(name), **style})
        runs = part["run_evidence"].values[drawn & (part["run_endpoint"].values == name)]
        axes.plot(runs, np.full(len(runs), TICKS + APART * row), "|", color=colour)
    axes.set_xlabel("rival's share\nof the evidence")
    show_shares(axes, "probability")
    if drawn.any():
        axes.set_ylim(-0.03, TICKS + APART * len(COLOURS))


@draws(
    "flag_run_scores",
    view="log_score",
    by=(),
    reads="model: model log_score; model bound: log_score_interval; bound=low,high: bound",
)
def log_score(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The mean log score of each model with its bootstrap interval; further right is better."""
    _rows(axes, part, "log_score", "mean log score, nats per run", **style)


@draws(
    "flag_run_scores",
    view="brier",
    by=(),
    reads="model: model brier; model bound: brier_interval; bound=low,high: bound",
)
def brier(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The mean Brier score of each model with its bootstrap interval; further left is better."""
    _rows(axes, part, "brier", "mean Brier score", **style)


def _rows(axes: Axes, part: xr.Dataset, name: str, label: str, **style: Any) -> None:
    value = part[name].values
    low, high = part[f"{name}_interval"].sel(bound=["low", "high"]).transpose("bound", "model").values
    forest(axes, np.arange(len(value)), value, low, high, limits_of(low, high), **{"color": PALETTE[0], **style})
    name_rows(axes, [endpoint_name(model) for model in part["model"].values])
    axes.set_xlabel(f"{label}, {100 * part.attrs['option_level']:g} %")
