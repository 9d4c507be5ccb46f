"""[002] Fig. 1: a hidden flag with private crops, and four slices of the experiments."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Rectangle

import meanfield
from paper_figs._item import Item
from paper_figs._parts import part, together
from paper_figs._study import Study
from paper_figs._style import styled
from paper_figs.paper_002._france import SIZES, TRUTH, replayed, show_flag
from paper_figs.paper_002._measured import by_protocol
from paper_figs.paper_002._theory import mechanism1_fit, teams
from paper_figs.paper_002.figure_2 import protocols
from theory import flag_game

CROPS = ("#e69f00", "#009e73", "#cc79a7", "#000000")
WIDTH, HEIGHT = 6, 4  # of a crop
SHOWN_UPTAKE = 1.0  # most trials
TITLES = (
    "(b) population size, pairs of GPT-4o",
    "(c) social awareness, broadcast",
    f"(d) team diversity, broadcast, α = {SHOWN_UPTAKE:g}",
    "(e) protocol and team, N = 8",
)


def numbers(study: Study) -> xr.Dataset:
    """A small game, the fit of Mechanism 1 with its data, teams by uptake, and protocols."""
    game = part(replayed(study), f"N_{SIZES[0]}")
    table = by_protocol(study.flag_game("protocols_n8"))
    return together(game=game, fit=mechanism1_fit(study), teams=teams(study), protocols=table)


@styled
def draw(found: xr.Dataset) -> Figure:
    """The flag and its crops on the left, the slices b to e on the right."""
    figure = plt.figure(figsize=(11.5, 6.4))
    left, right = np.ravel(figure.subfigures(1, 2, width_ratios=[1, 2.2]))
    _trial(left, part(found, "game"))
    (size, uptake), (team, protocol) = right.subplots(2, 2)
    meanfield.plot(part(found, "fit"), ax=size, view="accuracy")
    size.legend(loc="lower right")
    _uptake(uptake, part(found, "teams"))
    _team(team, part(found, "teams"))
    protocols(protocol, part(found, "protocols"))
    protocol.tick_params(axis="y", labelsize=7)
    for axis, title in zip((size, uptake, team, protocol), TITLES, strict=True):
        axis.set_title(title)
    return figure


def _trial(figure: SubFigure, game: xr.Dataset) -> None:
    """The flag with the outlines of its crops, and below what each agent sees and says."""
    axes = figure.subplot_mosaic([["flag"] * 2, [0, 1], [2, 3]], height_ratios=[2, 1, 1])
    show_flag(axes["flag"])
    axes["flag"].set_title(f"(a) hidden flag ({TRUTH}), private crops,\nguesses before → after talk")
    before, after = (game[f"{when}_report"].values[0] for when in ("initial", "final"))
    for k, colour in enumerate(CROPS):
        corner = int(game["left"][k]), int(game["top"][k])
        axes["flag"].add_patch(Rectangle(corner, WIDTH, HEIGHT, fill=False, edgecolor=colour, linewidth=2.5))
        seen = axes[k]
        seen.imshow(flag_game.render_crop(flag_game.flag_of(TRUTH), *corner))
        seen.set_xticks([])
        seen.set_yticks([])
        seen.spines[:].set(visible=True, edgecolor=colour, linewidth=2.5)
        seen.set_title(f"{before[k]} → {after[k]}", fontsize=8)


def _uptake(axis: Axes, found: xr.Dataset) -> None:
    """Means over compositions against uptake; thin lines are single compositions."""
    alpha = found["uptake"].values
    axis.plot(alpha, found["measured"].transpose("uptake", "number"), color="#d55e00", lw=0.5, alpha=0.5)
    axis.plot(alpha, found["measured"].mean("number"), "o-", color="#d55e00", label="measured, mean of teams")
    axis.plot(alpha, found["collective_accuracy"].mean("number"), "--", color="black", label="predicted")
    axis.set_xlabel("uptake α of the prompt")
    axis.set_ylabel("collective mean accuracy")
    axis.set_ylim(-0.03, 1.03)
    axis.legend(loc="lower right")


def _team(axis: Axes, found: xr.Dataset) -> None:
    meanfield.plot(found.sel(uptake=SHOWN_UPTAKE), ax=axis, view="accuracy")
    axis.legend(loc="lower right", fontsize=7)


ITEMS = [
    Item(
        "002",
        "1",
        "The Flag Game",
        "(a) A hidden flag, private crops, and guesses of countries. (b-e) Collective mean accuracy by population "
        "size, social awareness, composition of the team and protocol.",
        numbers,
        draw,
        "The text, not the caption, tells what b to e are. (a) is a game of ideal observers, the first column of Fig. "
        "3c. (b) is Fig. 5d, 40 seeds at each N. (c) is the mean over the nine compositions of the published table. "
        "It is 0.543, 0.672, 0.725, 0.800 and 0.638 at α = 0, 0.25, 0.5, 0.75 and 1; the paper says that it rises "
        "from 0.54 to 0.81. At α = 1 the table has 35 trials, elsewhere 10; isolated agents are right in 0.354 of "
        "cases there, elsewhere in 0.421 to 0.432. The prediction is gossip with the α of the prompt, γ from the "
        "probe of Fig. 8 (m = 3, weak evidence) and 1,000 trials; nothing is fitted to this table. (d) has α = 1, the "
        "uptake with most trials. (e) is Fig. 2b.",
    )
]
