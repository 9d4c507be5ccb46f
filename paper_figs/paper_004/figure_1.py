"""[004] Fig. 1: interaction amplifies, induces or overrides individual bias; trajectories and bars."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import FIRST_WORD, LABELS, SECOND_WORD, styled
from paper_figs.paper_004._trajectories import said
from validation.populations import neutrality

MODELS = ("llama31_70B", "gpt-4o")
STRONG = {"Mexican/American": "Mexican", "African/White": "African", "gay/straight": "gay"}
N_AGENTS, RUNS, ROUNDS, SHOWN = 24, 1000, 30, 10


def numbers(study: Study) -> xr.Dataset:
    """Words said among 24 agents by outcome, for two models and three pairs, and whether an agent alone is neutral."""
    cases: list[xr.Dataset] = []
    for model in MODELS:
        for pair, strong in STRONG.items():
            policy = study.policy(model, pair)
            options = {"n_agents": N_AGENTS, "runs": RUNS, "rounds": ROUNDS, "shown": SHOWN}
            one = said(study, policy, strong, **options)
            cases.append(one.assign(neutral=bool(neutrality(policy)["neutral"].item())))
    return xr.concat(cases, "case", coords="all", compat="override", combine_attrs="drop")


@styled
def draw(found: xr.Dataset) -> Figure:
    """A column for each pair, and for each model a panel of trajectories above one of bars."""
    columns = len(STRONG)
    figure, axes = plt.subplots(4, columns, figsize=(9, 8.4), height_ratios=[3, 1, 3, 1])
    for k in range(found.sizes["case"]):
        row, column = divmod(k, columns)
        one = found.isel(case=k)
        _trajectories(axes[2 * row, column], one)
        _bars(axes[2 * row + 1, column], one)
    axes[0, 0].legend(fontsize=7)
    for row in (0, 2):
        axes[row, 0].set_ylabel("frequency of a word")
    return figure


def _trajectories(axis: Axes, one: xr.Dataset) -> None:
    time = one["round"].values + 1  # what is said in a round is known at its end; the empty memories stand at 0
    first = float(one["individual"])
    for outcome, line in (("strong", "-"), ("weak", ":")):
        part = one.sel(outcome=outcome)
        for share in part["trajectory"].values:
            axis.plot(time, share, color=FIRST_WORD, lw=0.4, alpha=0.5)
            axis.plot(time, 1 - share, color=SECOND_WORD, lw=0.4, alpha=0.5)
        label = f"mean of runs that the {outcome} word wins"
        axis.plot(time, part["mean"], line, color=FIRST_WORD, lw=1.8, label=label)
        axis.plot(time, 1 - part["mean"], line, color=SECOND_WORD, lw=1.8)
    colours = ("black", "black") if bool(one["neutral"]) else (FIRST_WORD, SECOND_WORD)
    axis.plot(0, first, "o", color=colours[0], ms=6, clip_on=False)
    axis.plot(0, 1 - first, "o", color=colours[1], ms=6, clip_on=False)
    axis.set_xlim(0, _settled(one))
    axis.set_ylim(-0.03, 1.03)
    axis.set_xlabel("population round")
    strong = str(one["strong_word"].item())
    words = [strong, *(word for word in str(one["pair"].item()).split("/") if word != strong)]
    axis.set_title(f"{LABELS[str(one['model'].item())]}\n{words[0]} (strong, blue) or {words[1]}")


def _settled(one: xr.Dataset) -> float:
    """The round by which the means have arrived, with a margin."""
    moving = np.abs(np.diff(one["mean"].values, axis=1)) > 0.003
    return float(np.flatnonzero(moving.any(0)).max(initial=5) + 4)


def _bars(axis: Axes, one: xr.Dataset) -> None:
    number = one["number"].values
    agreed = number[:2].sum()
    shares = [float(one["individual"]), *([number[0] / agreed] if agreed else [])]
    for place, share in enumerate(shares):
        axis.barh(place, share, color=FIRST_WORD)
        axis.barh(place, 1 - share, left=share, color=SECOND_WORD)
        axis.text(0.02, place, f"{share:.2f}", va="center", color="white", fontsize=8)
    axis.axvline(0.5, color="black", lw=0.8)
    axis.set_yticks([0, 1], ["individual", "collective"])
    axis.invert_yaxis()
    axis.set_xlim(0, 1)


ITEMS = [
    Item(
        "004",
        "1",
        "Six kinds of misalignment",
        "Word frequencies of representative runs of 24 agents, their means by outcome, the individual bias at the "
        "start, and bars of individual and collective bias, for three pairs of Llama 3.1 and GPT-4o.",
        numbers,
        draw,
        "Other runs than the paper's. Means are over all runs of an outcome, and runs continue beyond their consensus.",
    )
]
