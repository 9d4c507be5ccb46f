"""[004] Figs. 1, 4, S7, S8 and S28 to S31 and Table S1: words over time, in simulations and under the rate equation."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import meanfield
from meanfield.toolbox import model_name
from paper_figs._item import item
from paper_figs._study import Study
from paper_figs._style import FIRST_WORD, SECOND_WORD, SHARE, grid_of_panels
from paper_figs.mean_field_dynamics import figure as mean_field_figure
from paper_figs.paper_004._ensembles import by_winner, draw_both_words, draw_density, outcomes, said
from paper_figs.table_s1 import published_against_computed
from validation.populations import neutrality

# Fig. 1
STRONG_WORDS = {"Mexican/American": "Mexican", "African/White": "African", "gay/straight": "gay"}
ON_24 = {"n_agents": 24, "runs": 1000, "rounds": 30, "shown": 10}

# Fig. 4
MODEL, PAIR = "gpt-4o", "African/White"
PRINTED = {4: "0.626", 10: "0.720", 100: "0.981", 1000: "1.00"}  # collective bias, to three significant digits
OBSERVATIONS = 100_000
BINS = 120

MODELS = {"004 S28": ["phi_4"], "004 S29": ["gpt-4o"], "004 S30": ["QWQ_32B"], "004 S31": ["llama31_70B"]}


def misalignment(study: Study) -> xr.Dataset:
    """Words said among 24 agents by outcome, for two models and three pairs, and whether an agent alone is neutral."""
    cases: list[xr.Dataset] = []
    for model in ("llama31_70B", "gpt-4o"):
        for pair, strong in STRONG_WORDS.items():
            (policy,) = study.each_policy(model=model, pair=pair)
            one = said(study, policy, strong, **ON_24)
            cases.append(one.assign(neutral=bool(neutrality(policy)["neutral"].item())))
    return xr.concat(cases, "case", coords="all", compat="override", combine_attrs="drop")


@item("004 1", misalignment)
def draw_misalignment(found: xr.Dataset) -> Figure:
    """Six kinds of misalignment.

    Word frequencies of representative runs of 24 agents, their means by outcome, the individual bias at the start, and
    bars of individual and collective bias, for three pairs of Llama 3.1 and GPT-4o.

    Other runs than the paper's. Means are over all runs of an outcome, and runs continue beyond their consensus.
    """
    figure, axes = plt.subplots(4, 3, figsize=(9, 8.4), height_ratios=[3, 1, 3, 1])
    for k in range(found.sizes["case"]):
        row, column = divmod(k, 3)
        _trajectories(axes[2 * row, column], found.isel(case=k))
        _bars(axes[2 * row + 1, column], found.isel(case=k))
    axes[0, 0].legend(fontsize=7)
    for row in (0, 2):
        axes[row, 0].set_ylabel("frequency of a word")
    return figure


def _trajectories(axis: Axes, one: xr.Dataset) -> None:
    time = one["round"].values + 1  # what is said in a round is known at its end; the empty memories stand at 0
    for outcome, line in (("strong", "-"), ("weak", ":")):
        part = one.sel(outcome=outcome)
        draw_both_words(axis, time, part["trajectory"].values, lw=0.4, alpha=0.5)
        label = f"mean of runs that the {outcome} word wins"
        axis.plot(time, part["mean"], line, color=FIRST_WORD, lw=1.8, label=label)
        axis.plot(time, 1 - part["mean"], line, color=SECOND_WORD, lw=1.8)
    colours = ("black", "black") if bool(one["neutral"]) else (FIRST_WORD, SECOND_WORD)
    for first, colour in zip((one["individual"], 1 - one["individual"]), colours, strict=True):
        axis.plot(0, first, "o", color=colour, ms=6, clip_on=False)
    # Until the means have arrived, and a margin
    moving = np.abs(np.diff(one["mean"].values, axis=1)) > 0.003
    axis.set(xlim=(0, np.flatnonzero(moving.any(0)).max(initial=5) + 4), ylim=SHARE, xlabel="population round")
    strong = one["strong_word"].item()
    (weak,) = (word for word in one["pair"].item().split("/") if word != strong)
    axis.set_title(f"{model_name(one['model'].item())}\n{strong} (strong, blue) or {weak}")


def _bars(axis: Axes, one: xr.Dataset) -> None:
    strong, weak, _ = one["number"].values
    shares = [float(one["individual"]), *([strong / (strong + weak)] if strong + weak else [])]
    for place, share in enumerate(shares):
        axis.barh(place, share, color=FIRST_WORD)
        axis.barh(place, 1 - share, left=share, color=SECOND_WORD)
        axis.text(0.02, place, f"{share:.2f}", va="center", color="white", fontsize=8)
    axis.axvline(0.5, color="black", lw=0.8)
    axis.set_yticks([0, 1], ["individual", "collective"])
    axis.invert_yaxis()
    axis.set_xlim(0, 1)


def four_sizes(study: Study) -> xr.Dataset:
    """Trajectories, densities and the collective bias at the four sizes."""
    (policy,) = study.each_policy(model=MODEL, pair=PAIR)
    times = by_winner(outcomes(study, policy, OBSERVATIONS, list(PRINTED)))[["density", "collective", "word"]]
    # Ends at the weak word are rare in large groups
    options = {"runs": 2000, "rounds": 60, "shown": 25}
    parts = [said(study, policy, times["word"].values[0], n_agents=size, **options) for size in PRINTED]
    found = xr.concat(parts, "n_agents", coords="minimal", compat="override", combine_attrs="drop")
    found = found.drop_vars("number").merge(times.sel(consensus_time=slice(0, BINS - 1)), compat="override")
    return found.assign_coords(printed=("n_agents", list(PRINTED.values())))


@item("004 4", four_sizes)
def draw_four_sizes(found: xr.Dataset) -> Figure:
    """Coordination becomes deterministic in large groups.

    Trajectories by winner and densities of the consensus time of GPT-4o {White, African} at four sizes, from 100,000
    observations in total; collective bias 0.626, 0.720, 0.981 and 1.00.

    The paper does not name the sizes: 4, 10, 100 and 1,000 fit its biases. Here are 100,000 runs at each. The bias at N
    = 4 agrees with the printed one within the error of 1,000 runs, not of 100,000. Each density is the distribution of
    the time given the winner.
    """
    figure, axes = plt.subplots(2, found.sizes["n_agents"], figsize=(11, 5))
    for k, (above, below) in enumerate(axes.T):
        one = found.isel(n_agents=k)
        for outcome in ("strong", "weak"):
            draw_both_words(above, one["round"], one["trajectory"].sel(outcome=outcome).values, lw=0.5, alpha=0.6)
        bias = f"{float(one['collective']):.3f} (printed {one['printed'].item()})"
        above.set(title=f"N = {int(one['n_agents']):,}: {bias}", ylim=SHARE, xlim=(0, 40), xlabel="round, from 0")
        draw_density(below, one, 3.5, 1)
        below.set(xlim=(0, 60), xlabel="consensus time (round, from 0)")
    axes[0, 0].set_ylabel("share of what is said")
    axes[1, 0].set_ylabel("density of the consensus time")
    axes[1, 0].legend(fontsize=7)
    return figure


def metastable(study: Study, model: str, pair: str) -> xr.Dataset:
    """Words said in 100 runs at each size, by outcome."""
    (policy,) = study.each_policy(model=model, pair=pair)
    strong = by_winner(outcomes(study, policy))["word"].values[0]
    parts = [said(study, policy, strong, n_agents=n, runs=100, rounds=200, shown=100) for n in (24, 100, 500, 2000)]
    return xr.concat(parts, "n_agents", coords="minimal", compat="override", combine_attrs="drop")


@item({"004 S7": ("llama31_70B", "young/old"), "004 S8": ("llama31_70B", "more/less")}, metastable)
def draw_metastable(found: xr.Dataset) -> Figure:
    """Metastable dynamics.

    The probability of each word in 100 trajectories at several sizes; large groups do not agree.

    The share of what is said in a round, of other runs than the paper's; 200 rounds are shown.
    """
    figure, axes = grid_of_panels(found.sizes["n_agents"], width=2.8, height=2.4)
    strong = found["strong_word"].item()
    (weak,) = (word for word in found["pair"].item().split("/") if word != strong)
    for k, axis in enumerate(axes):
        one = found.isel(n_agents=k)
        time = one["round"].values + 1
        draw_both_words(axis, time, one["trajectory"].values.reshape(-1, len(time)), lw=0.3, alpha=0.4)
        first = float(one["individual"])
        axis.plot([1], [first], "o", color=FIRST_WORD, label=f"{strong} (strong)", zorder=3)
        axis.plot([1], [1 - first], "o", color=SECOND_WORD, label=f"{weak} (weak)", zorder=3)
        axis.set_title(f"N = {int(one['n_agents']):,}; {int(one['number'].sel(outcome='none'))} runs without consensus")
        axis.set_ylim(SHARE)
    axes[0].legend(fontsize=7)
    figure.supxlabel("round")
    figure.supylabel("share of what is said")
    figure.suptitle(model_name(found["model"].item()))
    return figure


def shares(study: Study, model: str) -> xr.Dataset:
    """Word shares by time from empty memories."""
    study.each_policy(model=model)  # which names what is not at hand
    return study.kept(f"mean_field_{model}", meanfield.solve, study.policies.sel(model=[model]))


@item(MODELS, shares)
def draw_shares(found: xr.Dataset) -> Figure:
    """Mean-field dynamics.

    The word probabilities of each pair under the rate equation.

    Population rounds, two units of the time of Eq. 1.
    """
    return mean_field_figure(found)


def eigenvalues(study: Study) -> xr.Dataset:
    """The stability table of all policies at hand."""
    return study.kept("stability_table", meanfield.stability_table, study.policies)


@item("004 Table S1", eigenvalues)
def against_print(table: xr.Dataset) -> pd.DataFrame:
    """Leading eigenvalues at the candidates.

    The first eigenvalue at consensus on each word for four models, to three significant digits; the strong word in
    bold.

    Printed and computed values side by side; a note marks misprints and candidates that are not fixed points.
    """
    rows = published_against_computed(table)
    rows["word"] = rows["word"] + rows["strong"].map({1: " (strong)", 0: ""})
    note = rows["reason"].where(rows["reason"] != "", rows["agrees"].map({True: "", False: "differs"}))
    note = note.where(rows["is_fixed_point"], note.str.cat(["no fixed point"] * len(rows), sep="; ").str.strip("; "))
    rows = rows.assign(computed=rows["computed"].map("{:.6g}".format), note=note)
    wide = rows.pivot(index=["pair", "word"], columns="model", values=["printed", "computed", "note"])
    return wide.swaplevel(axis=1).sort_index(axis=1, level=0, sort_remaining=False)
