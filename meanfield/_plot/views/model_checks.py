"""Checks of language models: questions about the prompt, generated words, and warnings about policies."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from meanfield._plot.intervals import error_bars
from meanfield._plot.registry import draws
from meanfield._plot.scales import show_shares, whole_ticks
from meanfield._plot.words import NEUTRAL, PALETTE, words_in

# The groups of questions of [004] Table S2
CATEGORIES = {"Rules": PALETTE[0], "Time": PALETTE[1], "State": PALETTE[2]}
P_VALUES = np.linspace(0, 1, 21)  # an alarm is the first bin
DEVIATIONS = 4.0  # that a histogram shows at least
MODEL_AND_PAIR = ("model", "pair")


@draws(
    "comprehension",
    view="accuracy",
    reads="question: question category accuracy standard_error; question agent: malformed",
)
def accuracy(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The accuracy of answers to each kind of question with standard errors, and the share not in the format."""
    place = np.arange(part.sizes["question"])
    categories = [str(name) for name in part["category"].values]
    look = {"color": [CATEGORIES[name] for name in categories], "capsize": 3, **style}
    axes.bar(place, part["accuracy"], 0.7, yerr=part["standard_error"], **look)
    malformed = part["malformed"].mean("agent")
    (marks,) = axes.plot(place, malformed, "_", color="black", markersize=9, label="not in the format")
    groups = [Patch(color=CATEGORIES[name], label=name) for name in dict.fromkeys(categories)]
    axes.legend(handles=[*groups, marks])
    axes.set_xticks(place, part["question"].values, rotation=30, ha="right")
    show_shares(axes, "accuracy")


@draws(
    "generation_test",
    view="shares",
    reads="state word: count q; state word bound: share_interval; word: word; bound=low,high: bound",
)
def shares(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of each word among generated ones against its probability in the policy, with exact intervals."""
    words = words_in(part)
    drawn = part["count"].sum("word")
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8)
    for number, word in enumerate(words[:1] if len(words) == 2 else words):
        one = part.isel(word=number)
        low, high = one["share_interval"].sel(bound=["low", "high"]).transpose("bound", "state").values
        look = {"color": colours[word], "label": word, "markersize": 3, "linewidth": 0.8, **style}
        error_bars(axes, one["q"].values, (one["count"] / drawn).values, low, high, **look)
    axes.set_xlabel("probability in the policy")
    show_shares(axes, f"generated, {100 * part.attrs['option_share_level']:g} % interval")


@draws(
    "generation_test",
    view="p_values",
    reads="state: p_value; bound=low,high: bound alarm_interval; : expected_alarms",
)
def p_values(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The p-values of exact tests of each memory state, and how many false alarms are expected."""
    p = part["p_value"].values
    axes.hist(p[~np.isnan(p)], P_VALUES, **{"color": "0.75", **style})
    low, high = part["alarm_interval"].sel(bound=["low", "high"]).values
    label = f"false alarms, {100 * part.attrs['option_alarm_level']:g} %"
    middle, expected = [P_VALUES[:2].mean()], np.atleast_1d(part["expected_alarms"].values)
    error_bars(axes, np.array(middle), expected, np.array([low]), np.array([high]), color=PALETTE[1], label=label)
    axes.margins(y=0.25)  # for the legend
    axes.set_xlabel("p-value of the exact test")
    axes.set_ylabel("memory states")


@draws("generation_test", view="deviations", reads="state word: deviation; word: word")
def deviations(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Deviations of the first word's count in standard deviations, beside the normal distribution."""
    z = part["deviation"].isel(word=0).values
    z = z[~np.isnan(z)]
    edge = max(DEVIATIONS, float(np.abs(z).max(initial=0)))
    bins, grid = np.linspace(-edge, edge, 25), np.linspace(-edge, edge, 200)
    axes.hist(z, bins, **{"color": "0.75", **style})
    axes.plot(
        grid,
        z.size * (bins[1] - bins[0]) * np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi),
        color="black",
        label="normal law",
    )
    axes.margins(y=0.2)
    axes.set_xlabel("deviation in standard deviations")
    axes.set_ylabel("memory states")


@draws("policy_check", view="warnings", by=(), reads="check: check; policy check: warning; policy: policy model? pair?")
def warnings(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """A cell for each policy and check, filled where there is a warning."""
    warned = part["warning"].transpose("policy", "check").values != ""
    mesh = {"cmap": "Oranges", "vmin": 0, "vmax": 1.5, "edgecolors": "0.8", "linewidth": 0.5, **style}
    axes.pcolormesh(warned.astype(float), **mesh)
    known = [part[dim].values for dim in MODEL_AND_PAIR if dim in part.coords]
    names = [" ".join(map(str, labels)) for labels in zip(*known, strict=True)] if known else part["policy"].values
    axes.set_yticks(np.arange(len(warned)) + 0.5, names)
    checks = [str(one).replace("_", " ") for one in part["check"].values]
    axes.set_xticks(np.arange(warned.shape[1]) + 0.5, checks, rotation=30, ha="right")
    axes.invert_yaxis()
    axes.set_xlabel(f"warnings (filled): {warned.sum()}")


@draws("policy_check", view="captured_mass", by=(), reads="policy: policy lowest_mass median_mass")
def checked_mass(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The lowest and the median captured mass of each policy, and the least that passes."""
    for name, marker, label in (("lowest_mass", "v", "lowest"), ("median_mass", "o", "median")):
        look = {"color": PALETTE[0], "marker": marker, "linestyle": "none", "label": label, **style}
        axes.plot(part["policy"], part[name], **look)
    if unknown := int(part["median_mass"].isnull().sum()):
        axes.plot([], [], " ", label=f"not recorded: {unknown}")
    axes.axhline(part.attrs["option_least_mass"], color=NEUTRAL, linestyle=":", label="least that passes")
    whole_ticks(axes.xaxis)
    axes.set_xlabel("number of the policy")
    show_shares(axes, "captured mass")
