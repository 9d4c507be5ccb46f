"""[004] Fig. 2: individual against collective bias of 24 agents, beside the minimal naming game."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import meanfield
import validation
from meanfield.toolbox import labelled
from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import LABELS, grid_of_panels, styled
from paper_figs.paper_004._ensembles import MARKERS, each_outcomes, strong_word, wins_of

N_AGENTS = 24
GAME_RUNS = 4000
BIASES = np.linspace(0, 1, 21)
REVERSED = "#f4c2c2"


def numbers(study: Study) -> xr.Dataset:
    """Bias before and after talking, for each policy; the share of the favoured word in the minimal naming game."""
    tables = each_outcomes(study, meanfield.each_policy(study.policies))
    rows = [_row(table.sel(n_agents=N_AGENTS), strong_word(table)) for table in tables]
    settings = {"runs": study.runs(GAME_RUNS), "n_agents": N_AGENTS, "biases": BIASES.tolist()}
    game = study.kept("minimal_naming_game", lambda: _game(study), None, **settings)
    individual, collective, runs, strong = map(np.array, zip(*rows, strict=True))
    columns = {
        "individual": ("policy", individual, "probability of the strong word with an empty memory"),
        "collective": ("policy", collective, "fraction of runs that agree on the strong word"),
        "runs": ("policy", runs, "number of runs with consensus"),
        "strong_word": ("policy", strong, "strong word"),
        "minimal_naming_game": ("p", game["collective"].values, "fraction of games that agree on the favoured word"),
    }
    names = {name: ("policy", [table[name].item() for table in tables]) for name in ("model", "pair")}
    return labelled(columns, coords={**names, "p": BIASES})


def _row(table: xr.Dataset, strong: str) -> tuple[float, float, int, str]:
    wins = wins_of(table)
    ended = int(wins.sum())
    individual = float(table["individual"].sel(outcome=strong))
    return individual, float(wins.sel(outcome=strong)) / ended if ended else np.nan, ended, strong


def _game(study: Study) -> xr.Dataset:
    """Fractions of games of 24 agents with this bias that end at the first word, from empty lexicons."""
    share = []
    for p in BIASES:
        one = validation.minimal_naming_game.simulate(
            N_AGENTS, p=float(p), runs=study.runs(GAME_RUNS), seed=study.seed, max_rounds=1000
        )
        share.append(float((one["consensus_word"] == "A").sum() / one["consensus_word"].notnull().sum()))
    columns = {"collective": ("p", np.array(share), "fraction of games that agree on the first word")}
    return labelled(columns, coords={"p": BIASES})


@styled
def draw(found: xr.Dataset) -> Figure:
    """A panel for each model; reversal is shaded, and the minimal naming game is dashed."""
    models = list(dict.fromkeys(found["model"].values))
    pairs = list(dict.fromkeys(found["pair"].values))
    figure, axes = grid_of_panels(len(models), width=3.4, height=3.1)
    for axis, model in zip(axes, models, strict=True):
        _panel(axis, found.isel(policy=np.flatnonzero(found["model"].values == model)), pairs)
        axis.plot(found["p"], found["minimal_naming_game"], "--", color="black", lw=1, label="minimal naming game")
        axis.set_title(LABELS.get(str(model), str(model)))
        axis.set_xlabel("individual bias")
    axes[0].set_ylabel("collective bias")
    handles = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside right center", title="strong over weak word")
    return figure


def _panel(axis: Axes, one: xr.Dataset, pairs: list[str]) -> None:
    axis.fill_between([0, 0.5], 0.5, 1, color=REVERSED, lw=0)
    axis.fill_between([0.5, 1], 0, 0.5, color=REVERSED, lw=0)
    axis.axvline(0.5, color="0.6", ls=":", lw=1)
    for k in range(one.sizes["policy"]):
        row = one.isel(policy=k)
        strong, pair = str(row["strong_word"].item()), str(row["pair"].item())
        weak = next((word for word in pair.split("/") if word != strong), "")
        place = pairs.index(pair)
        axis.plot(
            row["individual"],
            row["collective"],
            MARKERS[place % len(MARKERS)],
            ms=6,
            color=f"C{place % 10}",
            mec="black",
            fillstyle="full" if strong == pair.split("/")[0] else "none",
            mew=0.4,
            label=f"{strong} over {weak}",
        )
    axis.set_xlim(-0.03, 1.03)
    axis.set_ylim(-0.03, 1.03)


ITEMS = [
    Item(
        "004",
        "2",
        "Individual and collective bias",
        "Bias of a single agent with an empty memory against the fraction of runs of 24 agents that agree on "
        "the strong word, for eleven pairs and four models; the dashed line is the minimal naming game with that bias.",
        numbers,
        draw,
        "10,000 runs a point instead of 1,000; the models at hand only.",
    )
]
