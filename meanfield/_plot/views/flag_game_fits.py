"""Fits of the flag game's mechanisms to endpoints, accuracies and answers, and forecasts of its runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter
from scipy.special import ndtri

from meanfield._plot.curves import curve
from meanfield._plot.intervals import aside, error_bars, forest, limits_of, name_rows, wilson
from meanfield._plot.registry import draws
from meanfield._plot.scales import plain_log, show_shares, show_sizes, whole_ticks
from meanfield._plot.views.flag_game_teams import COLOURS, endpoint_name
from meanfield._plot.words import NEUTRAL, PALETTE, model_name

FITTED, PAPER, MEASURED = PALETTE[0], PALETTE[1], "black"
LEVEL = 0.95
MEASURED_LABEL = f"measured, {100 * LEVEL:g} %"
WIDER = 3.0  # limits of parameters, in the largest estimate
PARAMETERS = {"uptake": "uptake α", "rewrite": "rewrite γ", "literal": "literal α(1 - γ)"}
RESPONSES = {
    "private_evidence": ("private evidence", PALETTE[0]),
    "social_evidence": ("social evidence", PALETTE[1]),
    "other_private_compatible": ("other, compatible", PALETTE[2]),
    "other_incompatible": ("other, incompatible", NEUTRAL),
}
APART = 0.3  # rows between the models of a parameter, in all
BESIDE = 0.12  # entries between the bars of two answers
TICKS = 1.06  # height of the first row of runs; the others are above it
NEXT = 0.05


@draws("mechanism1_fit", "polarization", "n_agents!: seeds; endpoint=polarization n_agents: measured fitted paper")
def polarization(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The fraction of runs that end polarized against N: measured, fitted, and by the paper's parameters."""
    endpoint(axes, part.sel(endpoint="polarization"), colours, **style)
    axes.set_ylabel("fraction of polarized ends")


@draws(
    "mechanism1_fit", "accuracy", "n_agents!: measured_accuracy measured_accuracy_error fitted_accuracy paper_accuracy"
)
def accuracy(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Collective accuracy against N: measured, fitted, and by the paper's parameters."""
    _against_size(axes, part["fitted_accuracy"], part["paper_accuracy"], **style)
    error = ndtri((1 + LEVEL) / 2) * part["measured_accuracy_error"]
    error_bars(axes, part["n_agents"], part["measured_accuracy"], error, color=MEASURED, label=MEASURED_LABEL)
    show_shares(axes, "collective mean accuracy")


@draws("mechanism1_fit", "endpoints", "n_agents!: seeds measured fitted paper", by=("endpoint",))
def endpoint(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The fraction of runs with an endpoint against N: measured, fitted, and by the paper's parameters."""
    _against_size(axes, part["fitted"], part["paper"], **style)
    ends = wilson(part["measured"], part["seeds"], LEVEL)
    error_bars(axes, part["n_agents"], part["measured"], *ends, color=MEASURED, label=MEASURED_LABEL)
    show_shares(axes, "fraction of runs")


def _against_size(axes: Axes, fitted: xr.DataArray, paper: xr.DataArray, **style: Any) -> None:
    sizes = fitted["n_agents"].values
    axes.plot(sizes, fitted, **{"color": FITTED, "label": "fitted", **style})
    axes.plot(sizes, paper, color=PAPER, linestyle="--", label="parameters of [002]")
    show_sizes(axes, sizes)


@draws(
    "mechanism1_fit",
    "intervals",
    "parameter!: estimate free identified bootstrap_standard_error; bound=low,high parameter: interval",
)
def intervals(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """A row for each parameter: fitted with its interval and the bootstrap's, held, or not determined."""
    free, known = part["free"].values.astype(bool), part["identified"].values.astype(bool)
    estimate, (low, high) = part["estimate"].values, part["interval"].values
    rows, level = np.arange(len(estimate)), part.attrs["option_level"]
    axes.set_xscale("symlog", linthresh=1)
    left, right = limits_of(estimate, low[known], high[known])
    limits = (min(WIDER * left, -0.1) if left < -1 else left), WIDER * right  # logarithmic beyond ±1
    forest(axes, rows[known], estimate[known], low[known], high[known], limits, **{"color": FITTED, **style})
    axes.plot(estimate[~known], rows[~known], "o", color=NEUTRAL, fillstyle="none")
    bars = ndtri((1 + level) / 2) * part["bootstrap_standard_error"].values
    if np.isfinite(bars).any():
        forest(axes, rows + 0.3, estimate, estimate - bars, estimate + bars, limits, color=PAPER, marker="")
    for row in rows[~known].tolist():
        told = "not determined" if free[row] else "held"
        axes.text(1.02, row, told, va="center", color=NEUTRAL, transform=axes.get_yaxis_transform())
    name_rows(axes, [str(name) for name in part["parameter"].values], xlim=limits)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_xlabel(f"{100 * level:g} % interval{'; bootstrap below' if np.isfinite(bars).any() else ''}")


@draws("mechanism1_fit", "directions", "direction!: direction_error direction_determined")
def directions(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The standard error along each direction in the space of free parameters, from the best to the least known."""
    error, known = part["direction_error"].values, part["direction_determined"].values.astype(bool)
    rank, finite, dots = part["direction"].values + 1, np.isfinite(error), {"marker": "o", "linestyle": "none"}
    axes.plot(rank[known], error[known], **{**dots, "label": "determined", "color": FITTED, **style})
    unknown = {"label": "not determined", "color": NEUTRAL, "fillstyle": "none"}
    axes.plot(rank[~known & finite], error[~known & finite], **{**dots, **unknown, **style})
    if not finite.all():
        look = {"color": NEUTRAL, "clip_on": False, "transform": axes.get_xaxis_transform()}
        axes.plot(rank[~finite], np.ones((~finite).sum()), "^", label="no curvature", **look)
    axes.axhline(1, color=NEUTRAL, linestyle=":")
    axes.set(yscale="log", xlabel="direction, from the best known", ylabel="standard error along it")
    plain_log(axes.yaxis)
    whole_ticks(axes.xaxis)


@draws(
    "mechanism1_comparison",
    "quantities",
    "n_agents!: measured simulated simulated_error inside; bound=low,high n_agents: interval; : quantity",
    by=("quantity",),
)
def quantity(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """A measured endpoint or accuracy with its interval, and the simulated one with its standard error, against N."""
    sizes, simulated, error = part["n_agents"].values, part["simulated"], part["simulated_error"]
    look = {"color": FITTED, "label": "simulated, ± SE", **style}
    curve(axes, sizes, simulated, (simulated - error, simulated + error), **look)
    outside = part["inside"].values == 0
    label = f"measured, {100 * part.attrs['option_level']:g} %"
    for chosen, text, inside in ((~outside, label, MEASURED), (outside, "simulated lies outside", "white")):
        if chosen.any():
            shown = (sizes[chosen], part["measured"].values[chosen], *part["interval"].values[:, chosen])
            error_bars(axes, *shown, color=MEASURED, markerfacecolor=inside, label=text)
    show_sizes(axes, sizes, "collective mean accuracy" if part["quantity"] == "accuracy" else "fraction of runs")


@draws("copying_fit", "endpoints", "endpoint! n_agents!: fitted")
def copying_endpoints(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Fractions of runs with each endpoint against N by the fitted copying process."""
    for name, fraction in zip(part["endpoint"].values, part["fitted"], strict=True):
        look = {"marker": "o", "color": COLOURS[str(name)], "label": endpoint_name(name), **style}
        axes.plot(part["n_agents"], fraction, **look)
    show_sizes(axes, part["n_agents"].values, "fraction of runs")


@draws("copying_fit", "parameters", "parameter!: estimate standard_error")
def copying_parameters(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Estimates of the copying process with their standard errors."""
    estimate, error = part["estimate"].values, part["standard_error"].values
    low, high = estimate - error, estimate + error
    limits = limits_of(low, high, [0.0])
    forest(axes, np.arange(len(estimate)), estimate, low, high, limits, **{"color": FITTED, **style})
    names = [endpoint_name(name) for name in part["parameter"].values]
    name_rows(axes, names, xlim=limits, xlabel="estimate ± standard error")


@draws(
    "mechanism2",
    "parameters",
    "model!: uptake rewrite literal; bound=low,high model: uptake_interval rewrite_interval literal_interval",
    by=("evidence", "bandwidth"),
)
def parameters(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Uptake, rewrite and the part taken up literally of each model, with profile intervals."""
    models = part["model"].values
    for k, (model, shift) in enumerate(zip(models, aside(len(models), APART), strict=True)):
        one = part.isel(model=k)
        ends = np.stack([one[f"{name}_interval"].values for name in PARAMETERS], axis=1)
        look = {"color": PALETTE[k % len(PALETTE)], "label": model_name(model), **style}
        estimate = [one[name].item() for name in PARAMETERS]
        forest(axes, np.arange(len(PARAMETERS)) + shift, estimate, *ends, (0.0, 1.0), **look)
    told = f"{100 * part.attrs['option_level']:g} % profile interval"
    name_rows(axes, list(PARAMETERS.values()), xlim=(-0.03, 1.03), xlabel=told)


@draws(
    "mechanism2",
    "answers",
    "response! social_entries!: count predicted; : model evidence bandwidth relation",
    by=("model", "evidence", "bandwidth", "relation"),
)
def answers(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Shares of answers by the number of social entries in memory: measured with Wilson intervals, and fitted."""
    entries, trials = part["social_entries"].values, part["count"].sum("response").values
    asked = trials > 0
    if not asked.any():
        axes.text(0.5, 0.5, "not asked", ha="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    for k, name in enumerate(part["response"].values):
        label, colour = RESPONSES[str(name)]
        share = part["count"].values[k, asked] / trials[asked]
        axes.plot(entries, part["predicted"][k], **{"color": colour, "label": label, **style})
        places = entries[asked] + BESIDE * (k - 1.5)
        error_bars(axes, places, share, *wilson(share, trials[asked]), color=colour)
    whole_ticks(axes.xaxis)
    show_shares(axes, "share of answers", xlabel="social entries in memory")


@draws("mechanism2", "likelihood", "evidence! bandwidth!: aic aic_similarity_fitted", by=())
def likelihood(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Gain in AIC of a fitted similarity of countries, by condition; above 0 the data reject the similarity held."""
    gain = (part["aic"] - part["aic_similarity_fitted"]).stack(condition=["evidence", "bandwidth"])
    names = [f"{evidence}\nm = {bandwidth}" for evidence, bandwidth in gain["condition"].values]
    axes.bar(names, gain.values, **{"color": PALETTE[0], **style})
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(xlabel="private evidence and bandwidth", ylabel="AIC less AIC, similarity fitted")


@draws("memory_conflict", "answers", "social_entries!: target_count lure_count other_count")
def conflict(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Shares of answers by the number of memory entries that name the lure, with Wilson intervals."""
    target, lure, trials = (part.attrs[f"option_{name}"] for name in ("target", "lure", "trials"))
    kinds = {"target": (f"{target} (target)", PALETTE[0]), "lure": (f"{lure} (lure)", PALETTE[1])}
    for k, (kind, (label, colour)) in enumerate((kinds | {"other": ("other", NEUTRAL)}).items()):
        share = part[f"{kind}_count"].values / float(trials)
        look = {"linestyle": "-", "color": colour, "label": label, **style}
        error_bars(axes, part["social_entries"] + BESIDE * (k - 1), share, *wilson(share, float(trials)), **look)
    show_shares(axes, "share of answers", xlabel=f"entries of memory that name {lure}")


@draws(
    "flag_run_evidence",
    "endpoints",
    "endpoint! evidence!: probability; run*: run_evidence run_n_agents run_endpoint; : n_agents",
    by=("model", "n_agents"),
)
def forecasts(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The probability of each endpoint against the rival's share of the evidence; ticks are real runs with this N."""
    drawn = part["run_n_agents"].values == part["n_agents"].values
    for row, (name, colour) in enumerate(COLOURS.items()):
        if name not in part["endpoint"].values:
            continue
        curve = part["probability"].sel(endpoint=name)
        axes.plot(part["evidence"], curve, **{"color": colour, "label": endpoint_name(name), **style})
        runs = part["run_evidence"].values[drawn & (part["run_endpoint"].values == name)]
        axes.plot(runs, np.full(len(runs), TICKS + NEXT * row), "|", color=colour)
    show_shares(axes, "probability", xlabel="rival's share\nof the evidence")
    if drawn.any():
        axes.set_ylim(-0.03, TICKS + NEXT * len(COLOURS))


@draws("flag_run_scores", "log_score", "model!: log_score; bound=low,high model: log_score_interval", by=())
def log_score(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The mean log score of each model with its bootstrap interval; further right is better."""
    _scores(axes, part, "log_score", "mean log score, nats per run", **style)


@draws("flag_run_scores", "brier", "model!: brier; bound=low,high model: brier_interval", by=())
def brier(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The mean Brier score of each model with its bootstrap interval; further left is better."""
    _scores(axes, part, "brier", "mean Brier score", **style)


def _scores(axes: Axes, part: xr.Dataset, name: str, label: str, **style: Any) -> None:
    ends, names = part[f"{name}_interval"].values, [endpoint_name(model) for model in part["model"].values]
    forest(axes, range(len(names)), part[name], *ends, limits_of(ends), **{"color": PALETTE[0], **style})
    name_rows(axes, names, xlabel=f"{label}, {100 * part.attrs['option_level']:g} %")
