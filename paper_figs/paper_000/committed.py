"""[000] Fig. 3, Fig. SI6 and Table SI6: conventions under committed minorities, and without any."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import meanfield
from meanfield.datasets import RealPopulations
from meanfield.toolbox import in_braces, labelled, model_name
from paper_figs._item import item
from paper_figs._study import NotAtHandError, Study
from paper_figs._style import FIRST_WORD, SECOND_WORD, SHARE
from paper_figs.paper_000._real import (
    SUCCESS,
    by_round,
    draw_runs,
    estimated_policy,
    models_of,
    real_populations,
    runs_of,
)
from validation.naming_game import committed_minority, consensus_stability

ROUNDS = 30
RUNS = 200  # simulated, for each number of committed agents
STRONG, WEAK = "M", "Q"
SIZES = {"llama3": 48, "llama31": 24, "claude": 24, "llama2": 24}
MEMORY = {"llama3": 3}  # others remember five interactions
PRINTED = {"llama3": (6, 1), "llama31": (10, 0), "claude": (5, 5), "llama2": (16, 11)}


def minorities(study: Study) -> xr.Dataset:
    """The share of the committed word by round, for each old consensus and number of committed agents; and flips."""
    real = real_populations(study)
    parts = [_minority(study, real, model, old) for model in models_of(real) for old in (STRONG, WEAK)]
    if not any(part is not None for part in parts):
        raise NotAtHandError("no run with a committed minority is at hand")
    return xr.concat([part for part in parts if part is not None], "case", coords="all", combine_attrs="drop")


def _minority(study: Study, real: RealPopulations, model: str, old: str) -> xr.Dataset | None:
    size, memory = SIZES.get(model, 24), MEMORY.get(model, 5)
    new = STRONG if old == WEAK else WEAK
    where = {"model": model, "options": f"{STRONG} {WEAK}", "memory_length": memory, "n_agents": size}
    runs = runs_of(real, experiment="committed", initial_consensus=old, committed_word=new, **where)
    if runs.empty:
        return None
    numbers = sorted({*runs["n_committed"]})
    over = (runs["success_last_3N"] >= SUCCESS) & (runs["majority_word_last_3N"] == new)
    # Runs of Llama 3 that did not flip were cut before 30 rounds
    cut = max(runs["interactions"].to_numpy()[~over.to_numpy()], default=np.inf)
    rounds = int(min(ROUNDS, np.ceil(cut / size)))
    runs = runs.assign(flips=over & (runs["interactions"] <= rounds * size))
    share = np.full((size, ROUNDS), np.nan)
    flipped, tried = np.full(size, np.nan), np.zeros(size, dtype=int)
    for number in numbers:
        some = runs[runs["n_committed"] == number]
        share[number] = by_round(real, some, ROUNDS, [new])[..., 0].mean(0)
        flipped[number], tried[number] = float(some["flips"].mean()), len(some)
    policy = estimated_policy(real, model, f"{STRONG} {WEAK}", memory)
    options = {"n_agents": size, "word": new, "numbers": list(range(size)), "rounds": rounds}
    options |= {"runs": study.runs(RUNS), "seed": study.seed}
    tested = study.kept(f"minority_{model}_{new}", committed_minority, policy, **options)
    fold = meanfield.critical_mass(policy, word=new)
    columns = {
        "share": (("n_committed", "round"), share, "mean share of the committed word in what is said"),
        "flipped": ("n_committed", flipped, "fraction of real runs that flip"),
        "runs": ("n_committed", tried, "number of real runs"),
        "simulated": ("n_committed", tested["flipped"].values[:size], "fraction of simulated runs that flip"),
        "critical_mass": ((), float(fold["critical_mass"]), "critical mass for large N"),
    }
    coords = {"n_committed": np.arange(size), "round": np.arange(1, ROUNDS + 1)}
    names = {"model": model, "old": old, "new": new, "n_agents": size}
    return labelled(columns, coords={**coords, **names}).reindex(n_committed=np.arange(max(SIZES.values())))


def smallest(flipped: xr.DataArray) -> float:
    """The smallest number of committed agents from which half of the runs or more flip; NaN if there is none."""
    known = flipped.dropna("n_committed")
    enough = known.values >= 0.5
    first = len(enough) - int(np.argmin(enough[::-1])) if not enough.all() else 0
    return float(known["n_committed"].values[first]) if first < len(enough) else np.nan


@item("000 3, 001 3", minorities)
def draw_minorities(found: xr.Dataset) -> Figure:
    """Committed minorities and critical mass.

    The share of the minority's word by time for several sizes of the minority, from a consensus on either word, and the
    critical mass of each model: 6 and 1 of 48, 10 and 0, 5 and 5, 16 and 11 of 24.

    The models at hand. Measured is the smallest tried number from which half or more of the real runs flip; the
    paper does not say what fraction it asks for. A flip counts within 30 rounds, as in [001] Methods; runs of Llama 3
    were cut after 21. Simulated: 200 populations of the estimated policy for each number, equally long. For large N the
    critical mass is the fold of the rate equation; the policy estimated for Llama 3.1 has one attractor and no fold.

    Shares count committed agents. Dots mark sizes at which all runs flip. A line ends where a run was stopped for its
    length.
    """
    models = list(dict.fromkeys(found["model"].values))
    figure, axes = plt.subplots(2, len(models) + 1, figsize=(3.4 * len(models) + 3.8, 5.6), squeeze=False)
    for column, model in enumerate(models):
        for row, old in enumerate((WEAK, STRONG)):
            cases = np.flatnonzero((found["model"].values == model) & (found["old"].values == old))
            if len(cases):
                _shares(axes[row, column], found.isel(case=cases[0]))
            else:
                axes[row, column].set_axis_off()
    axes[0, 0].set_ylabel(f"share of '{STRONG}', old consensus '{WEAK}'")
    axes[1, 0].set_ylabel(f"share of '{WEAK}', old consensus '{STRONG}'")
    _critical(axes[0, -1], found, models)
    _flips(axes[1, -1], found)
    return figure


def _shares(axis: Axes, one: xr.Dataset) -> None:
    numbers = one["n_committed"].values[one["runs"].fillna(0).values > 0]
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(numbers)))
    for number, colour in zip(numbers, colours, strict=True):
        row = one.sel(n_committed=number)
        all_flip = float(row["flipped"]) == 1
        style = {"marker": "o", "ms": 2.5} if all_flip else {"ls": "--"}
        axis.plot(one["round"], row["share"], color=colour, lw=1, label=f"{number}", **style)
    title = f"{model_name(one['model'].item())}, N = {int(one['n_agents'])}"
    axis.set(ylim=SHARE, xlabel="population round", title=title)
    axis.legend(fontsize=6, ncols=2, title="committed", title_fontsize=6)


def _critical(axis: Axes, found: xr.Dataset, models: list[str]) -> None:
    for k in range(found.sizes["case"]):
        one = found.isel(case=k)
        model, size = one["model"].item(), int(one["n_agents"])
        place = models.index(model) + (0.18 if one["old"] == STRONG else -0.18)
        colour = FIRST_WORD if one["old"] == STRONG else SECOND_WORD
        printed = PRINTED.get(model, (np.nan, np.nan))[one["old"].item() != STRONG]
        axis.plot(place - 0.09, printed / size, "s", color=colour)
        axis.plot(place - 0.03, smallest(one["flipped"]) / size, "o", color=colour)
        axis.plot(place + 0.03, smallest(one["simulated"]) / size, "^", color=colour)
        axis.plot(place + 0.09, one["critical_mass"], "_", color=colour, ms=9, mew=2)
    names = {"s": "printed", "o": "half of the real runs flip", "^": "half of the simulated runs flip", "_": "large N"}
    for marker, name in names.items():
        axis.plot([], [], marker, color="0.3", label=name)
    for colour, word in ((FIRST_WORD, STRONG), (SECOND_WORD, WEAK)):
        axis.plot([], [], color=colour, lw=4, label=f"against '{word}'")
    axis.set_xticks(range(len(models)), map(model_name, models))
    axis.set(title="(B) critical mass", ylabel="fraction committed")
    axis.legend(fontsize=6.5)


def _flips(axis: Axes, found: xr.Dataset) -> None:
    for k in range(found.sizes["case"]):
        one = found.isel(case=k)
        fraction = one["n_committed"] / one["n_agents"]
        label = f"{model_name(one['model'].item())} against '{one['old'].item()}'"
        axis.plot(fraction, one["simulated"], color=f"C{k}", lw=1)
        axis.plot(fraction, one["flipped"], "o", ms=4, color=f"C{k}", label=label)
    axis.set(xlabel="fraction committed", ylabel="fraction of runs", xlim=(-0.02, 0.6))
    axis.set_title("flips: real (points), simulated (lines)")
    axis.legend(fontsize=6.5)


@item("000 Table SI6, 001 Table S3", minorities)
def critical_table(found: xr.Dataset) -> pd.DataFrame:
    """Raw critical masses.

    The number of committed agents that overturn a consensus on the strong and on the weak word.

    As in Fig. 3: measured, simulated and for large N.
    """
    rows = []
    for k in range(found.sizes["case"]):
        one = found.isel(case=k)
        model, old, size = one["model"].item(), one["old"].item(), int(one["n_agents"])
        known = one["flipped"].dropna("n_committed")
        rows.append(
            {
                "model": model_name(model),
                "old consensus": old,
                "N": size,
                "printed": PRINTED.get(model, ("", ""))[old != STRONG],
                "half of the real runs flip": smallest(one["flipped"]),
                "any real run flips": float(known["n_committed"].where(known > 0).min()),
                "half of the simulated runs flip": smallest(one["simulated"]),
                "large N": round(float(one["critical_mass"]) * size, 1),
            }
        )
    return pd.DataFrame(rows).set_index(["model", "old consensus"])


def stability(study: Study) -> xr.Dataset:
    """The share of the old word by round in populations that start from it, without committed agents."""
    real = real_populations(study)
    keys, parts = ["model", "options", "memory_length", "n_agents"], list[xr.Dataset]()
    for _, some in runs_of(real, experiment="from_consensus").groupby(keys, sort=False):
        model, options, memory, size, word = some.iloc[0][[*keys, "initial_consensus"]]
        curves = by_round(real, some, ROUNDS, [word])[..., 0]
        policy = estimated_policy(real, model, options, memory)
        name = f"stability_{model}_{word}_{memory}_{size}"
        settings = {"n_agents": int(size), "runs": study.runs(RUNS), "rounds": ROUNDS, "seed": study.seed}
        held = study.kept(name, consensus_stability, policy, word, **settings)
        columns = {
            "share": (("run", "round"), curves, "share of the old word in what is said"),
            "simulated": ("round", held["word_share"].isel(n_agents=0).values[1:], "mean of simulated runs"),
        }
        names = {"model": model, "word": word, "n_agents": size, "memory_length": memory, "options": options}
        coords = {"run": np.arange(len(curves)), "round": np.arange(1, ROUNDS + 1)}
        parts.append(labelled(columns, coords={**coords, **names}))
    if not parts:
        raise NotAtHandError("no run from a consensus is at hand")
    return xr.concat(parts, "case", coords="all", join="outer", combine_attrs="drop")


@item("000 SI6, 001 S7", stability)
def draw_stability(found: xr.Dataset) -> Figure:
    """Stability of consensus.

    The share of the old word in populations that start from it: all stay, but Llama 3.1 leaves Q for M at once.

    The runs at hand, and 200 populations of the estimated policy each.
    """
    models = list(dict.fromkeys(found["model"].values))
    figure, axes = plt.subplots(1, len(models), figsize=(4.6 * len(models), 4.2), sharey=True, squeeze=False)
    for axis, model in zip(axes[0], models, strict=True):
        for place, case in enumerate(np.flatnonzero(found["model"].values == model)):
            one = found.isel(case=case)
            number, words = int(one["share"].notnull().any("round").sum()), sorted(one["options"].item().split())
            label = f"{one['word'].item()} of {in_braces(words)}, H = {int(one['memory_length'])}, "
            label += f"N = {int(one['n_agents'])}: {number} runs"
            draw_runs(axis, one["round"], one["share"].values, f"C{place}", label, None)
            axis.plot(one["round"], one["simulated"], "--", color=f"C{place}", lw=1)
        axis.plot([], [], "--", color="0.4", label="simulated with the estimated policy")
        axis.set(title=model_name(model), xlabel="population round", ylim=(-0.03, 1.06))
        axis.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.17))
    axes[0, 0].set_ylabel("share of the old word in what is said")
    return figure
