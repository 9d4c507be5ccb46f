"""[004] Figs. S17 to S27: the density of the consensus time by winner as the number of agents grows, a row a model."""

from __future__ import annotations

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.toolbox import labelled
from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import FIRST_WORD, LABELS, SECOND_WORD, styled
from paper_figs.paper_004._ensembles import MODELS, SHORTEST, each_outcomes, strong_word, weak_word, wins_of

SIZES = (4, 10, 24, 100, 1000)
PAIRS = (
    *("his/her", "gay/straight", "she/he", "White/Black", "more/less", "young/old", "African/White"),
    *("Mexican/American", "tall/short", "woman/man", "wife/husband"),
)
FIRST = 17


def numbers(study: Study, pair: str) -> xr.Dataset:
    """The density by model, size and winner: the share of the runs that a word wins that end in this round."""
    tables = each_outcomes(study, study.of_pair(pair))
    tables.sort(key=lambda table: (*MODELS, table["model"].item()).index(table["model"].item()))
    words = [(strong_word(table), weak_word(table)) for table in tables]
    density = [
        (table["count"] / wins_of(table).clip(min=1))
        .sel(n_agents=list(SIZES), outcome=list(both))
        .transpose("n_agents", "outcome", "consensus_time")
        .values
        for table, both in zip(tables, words, strict=True)
    ]
    columns = {
        "density": (
            ("model", "n_agents", "winner", "consensus_time"),
            np.array(density),
            "share of the runs that this word wins",
            "1/round",
        ),
        "word": (("model", "winner"), np.array(words), "word"),
    }
    coords = {
        "model": [table["model"].item() for table in tables],
        "n_agents": list(SIZES),
        "winner": ["strong", "weak"],
        "consensus_time": tables[0]["consensus_time"].values,
        "pair": pair,
    }
    return labelled(columns, coords=coords)


@styled
def draw(found: xr.Dataset) -> Figure:
    """A row of panels for each model, a column for each size."""
    rows, columns = found.sizes["model"], found.sizes["n_agents"]
    figure, axes = plt.subplots(rows, columns, figsize=(2.3 * columns, 2.1 * rows + 0.5), squeeze=False)
    for i, model in enumerate(found["model"].values):
        for j, size in enumerate(found["n_agents"].values):
            _panel(axes[i, j], found.sel(model=model, n_agents=size))
            axes[i, j].set_title(f"N = {size:,}")
        axes[i, 0].set_ylabel(f"{LABELS.get(str(model), str(model))}\ndensity")
        axes[i, 0].legend(fontsize=7)
    figure.supxlabel("consensus time (round, from 0)")
    figure.suptitle("{" + str(found["pair"].item()).replace("/", ", ") + "}")
    return figure


def _panel(axis: Axes, one: xr.Dataset) -> None:
    drawn = one["density"].values > 0
    for winner, marker, colour in (("strong", "o", FIRST_WORD), ("weak", "^", SECOND_WORD)):
        row = one.sel(winner=winner)
        seen = row["density"].values > 0
        label = f"{row['word'].item()} ({winner})"
        axis.plot(
            row["consensus_time"].values[seen], row["density"].values[seen], marker, ms=3, color=colour, label=label
        )
    axis.axvline(SHORTEST, color="red", ls=":", lw=0.8)
    if drawn.any():
        axis.set_yscale("log")
        axis.set_xlim(0, max(12, 1.08 * np.flatnonzero(drawn.any(0)).max()))


ITEMS = [
    Item(
        "004",
        f"S{FIRST + place}",
        "Densities of the consensus time, {" + pair.replace("/", ", ") + "}",
        "The density of the consensus time for runs that the strong and the weak word win, as N grows, a row a model.",
        partial(numbers, pair=pair),
        draw,
        "The panels are at five of the paper's sizes, with 10,000 runs up to N = 200 and 1,000 beyond. The scale is "
        "logarithmic, so that tails are seen. The strong word is blue and the weak one orange, as in other figures; "
        "the paper has red and blue. Rows of models that are not at hand are missing.",
    )
    for place, pair in enumerate(PAIRS)
]
