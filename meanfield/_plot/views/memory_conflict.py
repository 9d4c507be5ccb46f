"""The memory-conflict probe of the flag game, and the fit of Mechanism 2 to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.intervals import error_bars, forest, name_rows, wilson
from meanfield._plot.registry import draws
from meanfield._plot.scales import show_shares, whole_ticks
from meanfield._plot.words import NEUTRAL, PALETTE, model_name

PARAMETERS = {"uptake": "uptake α", "rewrite": "rewrite γ", "literal": "literal α(1 - γ)"}
RESPONSES = {
    "private_evidence": ("private evidence", PALETTE[0]),
    "social_evidence": ("social evidence", PALETTE[1]),
    "other_private_compatible": ("other, compatible", PALETTE[2]),
    "other_incompatible": ("other, incompatible", NEUTRAL),
}
APART = 0.3  # rows between the models of a parameter, in all
BESIDE = 0.12  # entries between the bars of two answers


@draws(
    "mechanism2",
    view="parameters",
    by=("evidence", "bandwidth"),
    reads="model: model uptake rewrite literal; model bound: uptake_interval rewrite_interval literal_interval; "
    "bound=low,high: bound",
)
def parameters(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Uptake, rewrite and the part taken up literally of each model, with profile intervals."""
    part = part if "model" in part.dims else part.expand_dims("model")
    shifts = np.linspace(-APART / 2, APART / 2, part.sizes["model"]) if part.sizes["model"] > 1 else [0.0]
    for k, model in enumerate(part["model"].values):
        one = part.isel(model=k)
        estimate = np.array([one[name].item() for name in PARAMETERS])
        ends = np.stack([one[f"{name}_interval"].sel(bound=["low", "high"]).values for name in PARAMETERS])
        look = {"color": PALETTE[k % len(PALETTE)], "label": model_name(model), **style}
        forest(axes, np.arange(len(PARAMETERS)) + shifts[k], estimate, *ends.T, (0.0, 1.0), **look)
    name_rows(axes, list(PARAMETERS.values()))
    axes.set_xlim(-0.03, 1.03)
    axes.set_xlabel(f"{100 * part.attrs['option_level']:g} % profile interval")


@draws(
    "mechanism2",
    view="answers",
    by=("model", "evidence", "bandwidth", "relation"),
    reads="social_entries: social_entries; response: response; social_entries response: count predicted; "
    ": model evidence bandwidth relation",
)
def answers(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Shares of answers by the number of social entries in memory: measured with Wilson intervals, and fitted."""
    entries = part["social_entries"].values
    trials = part["count"].sum("response").values
    asked = trials > 0
    if not asked.any():
        axes.text(0.5, 0.5, "not asked", ha="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    for k, name in enumerate(part["response"].values):
        label, colour = RESPONSES[str(name)]
        places = entries[asked] + BESIDE * (k - 1.5)
        share = part["count"].sel(response=name).values[asked] / trials[asked]
        axes.plot(entries, part["predicted"].sel(response=name), **{"color": colour, "label": label, **style})
        error_bars(axes, places, share, *wilson(share, trials[asked]), color=colour)
    whole_ticks(axes.xaxis)
    axes.set_xlabel("social entries in memory")
    show_shares(axes, "share of answers")


@draws(
    "mechanism2",
    view="likelihood",
    by=(),
    reads="evidence: evidence; bandwidth: bandwidth; evidence bandwidth: aic aic_similarity_fitted",
)
def likelihood(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Gain in AIC of a fitted similarity of countries, by condition; above 0 the data reject the similarity held."""
    gain = (part["aic"] - part["aic_similarity_fitted"]).expand_dims(
        [dim for dim in ("evidence", "bandwidth") if dim not in part["aic"].dims]
    )
    gain = gain.stack(condition=["evidence", "bandwidth"])
    names = [f"{evidence}\nm = {bandwidth}" for evidence, bandwidth in gain["condition"].values]
    axes.bar(names, gain.values, **{"color": PALETTE[0], **style})
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xlabel("private evidence and bandwidth")
    axes.set_ylabel("AIC less AIC, similarity fitted")


@draws("memory_conflict", view="answers", reads="social_entries: social_entries target_count lure_count other_count")
def conflict(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Shares of answers by the number of memory entries that name the lure, with Wilson intervals."""
    target, lure = part.attrs["option_target"], part.attrs["option_lure"]
    entries, trials = part["social_entries"].values, float(part.attrs["option_trials"])
    kinds = {
        "target": (f"{target} (target)", PALETTE[0]),
        "lure": (f"{lure} (lure)", PALETTE[1]),
        "other": ("other", NEUTRAL),
    }
    for k, (kind, (label, colour)) in enumerate(kinds.items()):
        share = part[f"{kind}_count"].values / trials
        look = {"linestyle": "-", "color": colour, "label": label, **style}
        error_bars(axes, entries + BESIDE * (k - 1), share, *wilson(share, trials), **look)
    axes.set_xlabel(f"entries of memory that name {lure}")
    show_shares(axes, "share of answers")
