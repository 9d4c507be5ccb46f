"""[003] Fig. 3 and C1 to C3: how one agent comes to a norm, and what it does about it."""

from __future__ import annotations

from functools import partial

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.toolbox import labelled
from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import styled
from paper_figs.norm_emergence import NORMS
from paper_figs.paper_003._society import ACCEPTS, DAYS, REMINDS, STAGES, TOLD, life, society

OPENING = 0.1  # days, at least, that the left panel shows
NAMED = {TOLD, ACCEPTS, REMINDS}  # stages in which the first name of the other agent stands below its stroke
ROOM = 0.12  # of a panel's width, for a name
COLOURS = dict(
    zip(STAGES, ("#d55e00", "#009e73", "#56b4e9", "#0072b2", "black", "#e69f00", "#cc79a7", "0.4"), strict=True)
)


def numbers(study: Study, agent: str, behaviour: str) -> xr.Dataset:
    """The moments of the agent's life with the norm, in the society with the seed of the study."""
    day, what, other = zip(*life(society(study), agent, behaviour), strict=True)
    columns = {
        "day": ("moment", list(day), "day, on average"),
        "what": ("moment", list(what), "what happens"),
        "other": ("moment", list(other), "the other agent"),
    }
    return labelled(columns, coords={"agent": agent, "behaviour": behaviour})


@styled
def draw(found: xr.Dataset) -> Figure:
    """A row for each stage, with a stroke for each moment: the opening on the left, both days on the right."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.9), sharey=True, width_ratios=[1, 1.4])
    accepted = found["day"].values[found["what"].values == ACCEPTS][:1]
    ends = max([OPENING, *(1.5 * accepted)]), DAYS
    for axis, end, named in zip(axes, ends, (NAMED, {REMINDS}), strict=True):
        _strokes(axis, found.isel(moment=found["day"].values <= end), end, named)
    axes[0].set_yticks(range(len(STAGES)), STAGES)
    axes[0].invert_yaxis()
    norm = NORMS[str(found["behaviour"].item())]
    axes[0].set_title("the opening")
    axes[1].set_title("two days")
    figure.suptitle(f"{found['agent'].item()} and “{norm}” in one simulated society")
    return figure


def _strokes(axis: Axes, part: xr.Dataset, end: float, named: set[str]) -> None:
    for row, stage in enumerate(STAGES):
        here = part.isel(moment=part["what"].values == stage)
        axis.eventplot(here["day"].values, lineoffsets=row, linelengths=0.55, colors=COLOURS[stage], linewidths=1)
        free = 0.0
        for day, other in zip(here["day"].values, here["other"].values, strict=True):
            if stage in named and day >= free:
                axis.text(day, row + 0.5, str(other).split()[0], fontsize=7, va="center")
                free = day + ROOM * end
    axis.set_xlim(0, end)
    axis.set_xlabel("day")


DIFFERS = (
    "Screenshots can't be had: a society simulated with the package's own operation probabilities, one run, not "
    "chosen, stands for them. Its day counts encounters on average and has no hours; its agents say a norm, not a "
    "sentence."
)


def _item(number: str, title: str, shows: str, agent: str, behaviour: str) -> Item:
    return Item("003", number, title, shows, partial(numbers, agent=agent, behaviour=behaviour), draw, DIFFERS)


ITEMS = [
    _item(
        "3",
        "A seasoned smoker adopts a norm",
        "Carlos Gomez smokes indoors, is told of the norm by Tamara Taylor and twelve minutes later by Abigail Chen, "
        "accepts it, on day 2 plans and acts by it, and reminds Sam Moore.",
        "Carlos Gomez",
        "smoking",
    ),
    _item(
        "C1",
        "Carlos Gomez and 'no smoking indoors'",
        "Screenshots of Carlos Gomez as he smokes indoors, accepts the norm in a talk, and goes outside to smoke.",
        "Carlos Gomez",
        "smoking",
    ),
    _item(
        "C2",
        "Tom Gomez and 'be quiet in public'",
        "Screenshots of Tom Gomez as he listens to loud music, accepts the norm, and takes headphones.",
        "Tom Gomez",
        "noise",
    ),
    _item(
        "C3",
        "Jennifer Moore and 'be quiet in public'",
        "Screenshots of Jennifer Moore as she sings loudly in the café, accepts the norm, and sings outside.",
        "Jennifer Moore",
        "noise",
    ),
]
