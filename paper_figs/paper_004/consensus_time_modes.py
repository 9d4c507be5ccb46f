"""[004] Figs. S9 to S16: the most frequent consensus time by group size, by winner and beside collective bias."""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.toolbox import labelled
from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import FIRST_WORD, LABELS, SECOND_WORD, grid_of_panels, styled
from paper_figs.paper_004._ensembles import MODELS, collective, each_outcomes, modal_time, strong_word, weak_word

BIAS, TIME = "#cc79a7", SECOND_WORD


def numbers(study: Study, model: str) -> xr.Dataset:
    """Modes of the consensus time by pair, size and winner, and the fraction of runs that the strong word wins."""
    tables = each_outcomes(study, study.of_model(model))
    words = [(strong_word(table), weak_word(table)) for table in tables]
    modes = [[modal_time(table, word) for word in both] for table, both in zip(tables, words, strict=True)]
    fractions = [collective(table, strong) for table, (strong, _) in zip(tables, words, strict=True)]
    dims = ("pair", "n_agents")
    columns = {
        "mode": (("pair", "winner", "n_agents"), np.array(modes), "mode of the consensus time", "rounds"),
        "collective": (dims, np.array([one for one, _ in fractions]), "fraction of runs that the strong word wins"),
        "error": (dims, np.array([error for _, error in fractions]), "standard error of the fraction"),
        "word": (("pair", "winner"), np.array(words), "word"),
    }
    coords = {
        "pair": [table["pair"].item() for table in tables],
        "winner": ["strong", "weak"],
        "n_agents": tables[0]["n_agents"].values,
        "model": model,
    }
    return labelled(columns, coords=coords)


@styled
def draw_modes(found: xr.Dataset) -> Figure:
    """A panel for each pair: the mode by size, for runs that the strong and the weak word win."""
    figure, axes = grid_of_panels(found.sizes["pair"], sharey=False)
    for k, axis in enumerate(axes):
        one = found.isel(pair=k)
        for winner, style in (
            ("strong", {"color": FIRST_WORD, "fmt": "o"}),
            ("weak", {"color": SECOND_WORD, "fmt": "^"}),
        ):
            row = one.sel(winner=winner)
            axis.errorbar(row["n_agents"], row["mode"], ms=4, label=f"{row['word'].item()} ({winner})", **style)
        axis.legend(fontsize=7)
        _finish(axis, one)
    return _titled(figure, axes, found, "mode of the consensus time (round, from 0)")


@styled
def draw_bias(found: xr.Dataset) -> Figure:
    """A panel for each pair: collective bias and the mode of the strong word's consensus time, by size."""
    figure, axes = grid_of_panels(found.sizes["pair"], width=3.0)
    for k, axis in enumerate(axes):
        one = found.isel(pair=k)
        axis.errorbar(one["n_agents"], one["collective"], yerr=one["error"], fmt="o", ms=4, color=BIAS)
        axis.set_ylim(-0.03, 1.06)
        beside = axis.twinx()
        beside.plot(one["n_agents"], one["mode"].sel(winner="strong"), "^", ms=4, color=TIME)
        beside.spines["right"].set_visible(True)
        beside.tick_params(colors=TIME)
        axis.tick_params(axis="y", colors=BIAS)
        _finish(axis, one)
    return _titled(
        figure, axes, found, "collective bias (circles); mode of the time when the strong word wins (triangles, right)"
    )


def _finish(axis: Axes, one: xr.Dataset) -> None:
    axis.set_xscale("log")
    axis.set_title("{" + str(one["pair"].item()).replace("/", ", ") + "}")


def _titled(figure: Figure, axes: list[Axes], found: xr.Dataset, label: str) -> Figure:
    figure.supxlabel("number of agents N")
    figure.supylabel(label)
    figure.suptitle(LABELS[str(found["model"].item())])
    return figure


DIFFERS = (
    "The mode is over the runs that a word wins, of 10,000 up to N = 200 and of 1,000 beyond; it is left out for "
    "fewer than 50 runs. Beside the bias stands the mode of the strong word."
)
ITEMS = [
    Item(
        "004",
        f"S{first + place}",
        f"{title}, {LABELS[model]}",
        shows,
        partial(numbers, model=model),
        draw,
        DIFFERS,
    )
    for first, title, shows, draw in (
        (9, "Mode of the consensus time", "The mode of the consensus time for each pair as N grows.", draw_modes),
        (
            13,
            "Collective bias and consensus time",
            "Collective bias and the mode of the consensus time for each pair as N grows.",
            draw_bias,
        ),
    )
    for place, model in enumerate(MODELS)
]
