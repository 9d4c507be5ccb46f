"""[002] Fig. 2b: protocols and teams of eight agents, the best first."""

from __future__ import annotations

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import styled
from paper_figs.paper_002._measured import by_protocol

PROTOCOLS = {"pairwise": ("pairwise", "#56b4e9"), "broadcast": ("broadcast", "#e69f00"), "org": ("manager", "#009e73")}


def numbers(study: Study) -> xr.Dataset:
    """Accuracies by protocol and team, from the published table."""
    return by_protocol(study.flag_game("protocols_n8"))


@styled
def draw(found: xr.Dataset) -> Figure:
    """A bar for each condition, and its initial accuracy as a circle."""
    figure, axis = plt.subplots(figsize=(7, 4))
    protocols(axis, found)
    axis.set_title("(b) N = 8")
    return figure


def protocols(axis: Axes, found: xr.Dataset) -> None:
    """Collective mean accuracies as rows, the best on top."""
    rows = range(found.sizes["condition"])
    colours = [PROTOCOLS[str(name)][1] for name in found["protocol"].values]
    error = {"elinewidth": 1, "capsize": 2}
    axis.barh(rows, found["collective"], 0.75, xerr=found["error"], color=colours, error_kw=error)
    (initial,) = axis.plot(found["initial"], rows, "o", color="black", fillstyle="none", label="initial")
    axis.set_yticks(rows, found["condition"].values)
    axis.invert_yaxis()
    axis.set_xlim(0, 1)
    axis.set_xlabel("collective mean accuracy ± SE")
    patches = [Patch(color=colour, label=label) for label, colour in PROTOCOLS.values()]
    axis.legend(handles=[*patches, initial], loc="lower right")


ITEMS = [
    Item(
        "002",
        "2",
        "Protocols and teams of eight agents",
        "(a) A diagram of a trial and of the three protocols. (b) Collective mean accuracy of N = 8 agents in 60 "
        "trials for each protocol and team of GPT-5.4 and GPT-4o, by descending accuracy.",
        numbers,
        draw,
        "(a) is not drawn: it holds no numbers. (b) is the published table, with 63 trials of each condition where "
        "the paper has 60; mixed teams are four of each model. GPT-5.4 managers reach 0.571 to 0.603 (printed: 0.57 "
        "to 0.60), GPT-4o managers 0.460 to 0.476 (printed: 0.46 to 0.48). GPT-4o does better than GPT-5.4 in pairs "
        "by 0.532 against 0.530, far within standard errors of 0.05, and worse in broadcasts by 0.456 against 0.558. "
        "There is no prediction: these prompts set no uptake α, and the theory gives a manager no model.",
    )
]
