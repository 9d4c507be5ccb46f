"""Checks of language models: questions about the prompt, generated words, warnings, and other ways of asking."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from scipy.stats import norm

from meanfield._plot.curves import note, words_drawn
from meanfield._plot.intervals import error_bars, name_rows
from meanfield._plot.registry import draws
from meanfield._plot.scales import show_shares, whole_ticks
from meanfield._plot.words import NEUTRAL, PALETTE
from meanfield.toolbox._errors import InputError

# The groups of questions of [004] Table S2
CATEGORIES = {"Rules": PALETTE[0], "Time": PALETTE[1], "State": PALETTE[2]}
P_VALUES = np.linspace(0, 1, 21)  # an alarm is the first bin
DEVIATIONS = 4.0  # that a histogram shows at least
SEEN = 1e-3  # a narrower part is not a bar


@draws("comprehension", "accuracy", "question!: category accuracy standard_error; question agent: malformed")
def accuracy(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The accuracy of answers to each kind of question with standard errors, and the share not in the format."""
    place, categories = np.arange(part.sizes["question"]), [str(name) for name in part["category"].values]
    look = {"color": [CATEGORIES[name] for name in categories], "capsize": 3, **style}
    axes.bar(place, part["accuracy"], 0.7, yerr=part["standard_error"], **look)
    malformed = part["malformed"].mean("agent")
    (marks,) = axes.plot(place, malformed, "_", color="black", markersize=9, label="not in the format")
    groups = [Patch(color=CATEGORIES[name], label=name) for name in dict.fromkeys(categories)]
    axes.legend(handles=[*groups, marks])
    axes.set_xticks(place, part["question"].values, rotation=30, ha="right")
    show_shares(axes, "accuracy")


@draws("generation_test", "shares", "state word!: count q; word bound=low,high state: share_interval")
def shares(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of each word among generated ones against its probability in the policy, with exact intervals."""
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8)
    found = part["count"] / part["count"].sum("word")
    for number, word in enumerate(words_drawn(part)):
        look = {"color": colours[word], "label": word, "markersize": 3, "linewidth": 0.8, **style}
        interval = part["share_interval"].values[number]
        error_bars(axes, part["q"].isel(word=number), found.isel(word=number), *interval, **look)
    axes.set_xlabel("probability in the policy")
    show_shares(axes, f"generated, {100 * part.attrs['option_share_level']:g} % interval")


@draws("generation_test", "p_values", "state: p_value; bound=low,high: alarm_interval; : expected_alarms")
def p_values(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The p-values of exact tests of each memory state, and how many false alarms are expected."""
    axes.hist(part["p_value"].dropna("state"), P_VALUES, **{"color": "0.75", **style})
    label = f"false alarms, {100 * part.attrs['option_alarm_level']:g} %"
    middle, ends = [P_VALUES[:2].mean()], part["alarm_interval"].values[:, None]
    error_bars(axes, middle, [part["expected_alarms"].item()], *ends, color=PALETTE[1], label=label)
    whole_ticks(axes.yaxis)
    axes.margins(y=0.25)  # for the legend
    axes.set(xlabel="p-value of the exact test", ylabel="memory states")


@draws("generation_test", "deviations", "state word!: deviation")
def deviations(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Deviations of the first word's count in standard deviations, beside the normal distribution."""
    z = part["deviation"].isel(word=0).dropna("state").values
    edge = max(DEVIATIONS, float(np.abs(z).max(initial=0)))
    bins, grid = np.linspace(-edge, edge, 25), np.linspace(-edge, edge, 200)
    axes.hist(z, bins, **{"color": "0.75", **style})
    axes.plot(grid, z.size * (bins[1] - bins[0]) * norm.pdf(grid), color="black", label="normal law")
    whole_ticks(axes.yaxis)
    axes.margins(y=0.2)
    axes.set(xlabel="deviation in standard deviations", ylabel="memory states")


@draws("policy_check", "warnings", "policy! check!: warning; policy: model? pair?", by=())
def warnings(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """A cell for each policy and check, filled where there is a warning."""
    warned = part["warning"].values != ""
    mesh = {"cmap": "Oranges", "vmin": 0, "vmax": 1.5, "edgecolors": "0.8", "linewidth": 0.5, **style}
    axes.pcolormesh(warned.astype(float), **mesh)
    known = [part[dim].values for dim in ("model", "pair") if dim in part.coords]
    names = [" ".join(map(str, labels)) for labels in zip(*known, strict=True)] if known else part["policy"].values
    axes.set_yticks(np.arange(len(warned)) + 0.5, names)
    checks = [str(one).replace("_", " ") for one in part["check"].values]
    axes.set_xticks(np.arange(len(checks)) + 0.5, checks, rotation=30, ha="right")
    axes.invert_yaxis()
    axes.set_xlabel(f"warnings (filled): {warned.sum()}")


@draws("policy_check", "captured_mass", "policy!: lowest_mass median_mass", by=())
def checked_mass(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The lowest and the median captured mass of each policy, and the least that passes."""
    for label, marker in (("lowest", "v"), ("median", "o")):
        look = {"color": PALETTE[0], "marker": marker, "linestyle": "none", "label": label, **style}
        axes.plot(part["policy"], part[f"{label}_mass"], **look)
    if unknown := int(part["median_mass"].isnull().sum()):
        note(axes, f"not recorded: {unknown}")
    axes.axhline(part.attrs["option_least_mass"], color=NEUTRAL, linestyle=":", label="least that passes")
    whole_ticks(axes.xaxis)
    show_shares(axes, "captured mass", xlabel="number of the policy")


@draws("robustness", "explained", "conclusion!: lowest highest; part! conclusion: explained")
def explained(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The part of the variance of each conclusion that each factor explains, with its range over all combinations."""
    if part["explained"].isnull().all():
        raise InputError("result has no number in explained: expected one at least")
    rows, left = np.arange(part.sizes["conclusion"]), np.zeros(part.sizes["conclusion"])
    for number, (name, width) in enumerate(zip(part["part"].values, part["explained"].values, strict=True)):
        if not (width > SEEN).any():
            continue
        colour = NEUTRAL if name == "interactions" else PALETTE[number % len(PALETTE)]
        axes.barh(rows, width, **{"left": left, "height": 0.7, "color": colour, "label": str(name), **style})
        left = left + np.nan_to_num(width)
    names = [
        f"{str(name).replace('_', ' ')}\n{_range(f'{low:.3g}', f'{high:.3g}')}"
        for name, low, high in zip(*(part[one].values for one in ("conclusion", "lowest", "highest")), strict=True)
    ]
    name_rows(axes, names, xlim=(0, 1), xlabel="part of the variance over all combinations")


def _range(low: str, high: str) -> str:
    """A range; NaN where no combination has the conclusion."""
    return "there is none" if low == "nan" else low if low == high else f"{low} to {high}"
