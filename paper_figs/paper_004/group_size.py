"""[004] Figs. 2, 3, S4 to S6 and S9 to S27: at which word runs end, how many do, and when, by group size."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import ndtr

import meanfield
import validation
from meanfield.toolbox import in_braces, labelled, model_name
from paper_figs._item import item
from paper_figs._study import Study
from paper_figs._style import SECOND_WORD, SHARE, grid_of_panels
from paper_figs.paper_004._ensembles import LOOKS, MODELS, NO_CONSENSUS, draw_density, ensembles, file_name, outcomes

N_AGENTS = 24
GAME_RUNS = 4000
BIASES = np.linspace(0, 1, 21)
MARKERS = "os^vD<>pP*X"  # by pair
REVERSED = "#f4c2c2"
LAW = np.geomspace(2, 1e4, 120)
BIAS, TIME = "#cc79a7", SECOND_WORD
DENSITY_SIZES = [4, 10, 24, 100, 1000]
PAIRS = (
    *("his/her", "gay/straight", "she/he", "White/Black", "more/less", "young/old", "African/White"),
    *("Mexican/American", "tall/short", "woman/man", "wife/husband"),
)


def biases(study: Study) -> xr.Dataset:
    """Bias before and after talking, for each policy; the share of the favoured word in the minimal naming game."""
    found = ensembles(study).sel(n_agents=N_AGENTS)[["individual", "collective", "runs", "word"]]
    game = study.kept(
        "minimal_naming_game", _games, n_agents=N_AGENTS, biases=BIASES.tolist(), **study.effort(GAME_RUNS)
    )
    return found.drop_vars("n_agents").merge(game)


def _games(n_agents: int, biases: list[float], **options: int) -> xr.Dataset:
    """Fractions of games with this bias that end at the first word, from empty lexicons."""
    share = []
    for p in biases:
        one = validation.minimal_naming_game.simulate(n_agents, p=p, max_rounds=1000, **options)["consensus_word"]
        share.append(float((one == "A").sum() / one.notnull().sum()))
    columns = {"minimal_naming_game": ("p", share, "fraction of games that agree on the favoured word")}
    return labelled(columns, coords={"p": biases})


def _rows(found: xr.Dataset, axes: list[Axes]) -> Iterator[tuple[Axes, xr.Dataset, str, str]]:
    """Each policy with the panel of its model, and the marker and the colour of its pair."""
    models, pairs = (list(dict.fromkeys(found[name].values)) for name in ("model", "pair"))
    for axis, model in zip(axes, models, strict=True):
        axis.set_title(model_name(model))
    for k in range(found.sizes["policy"]):
        row = found.isel(policy=k)
        place = pairs.index(row["pair"].item())
        yield axes[models.index(row["model"].item())], row, MARKERS[place % len(MARKERS)], f"C{place % 10}"


@item("004 2", biases)
def draw_biases(found: xr.Dataset) -> Figure:
    """Individual and collective bias.

    Fraction of runs of 24 agents that agree on the strong word against the bias of one agent with an empty memory, for
    eleven pairs and four models; the dashed line is the minimal naming game with that bias.

    10,000 runs a point instead of 1,000; the models at hand only.
    """
    figure, axes = grid_of_panels(len(set(found["model"].values)), width=3.4, height=3.1)
    for axis in axes:
        axis.fill_between([0, 0.5], 0.5, 1, color=REVERSED, lw=0)  # where talking reverses the bias
        axis.fill_between([0.5, 1], 0, 0.5, color=REVERSED, lw=0)
        axis.axvline(0.5, color="0.6", ls=":", lw=1)
        axis.set(xlim=SHARE, ylim=SHARE, xlabel="individual bias")
    for axis, row, marker, colour in _rows(found, axes):
        words = row["word"].values
        fill = "full" if words[0] == row["pair"].item().split("/")[0] else "none"
        look = {"ms": 6, "color": colour, "mec": "black", "mew": 0.4, "fillstyle": fill}
        axis.plot(row["individual"], row["collective"], marker, label=" over ".join(words), **look)
    for axis in axes:
        axis.plot(found["p"], found["minimal_naming_game"], "--", color="black", lw=1, label="minimal naming game")
    axes[0].set_ylabel("collective bias")
    handles = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside right center", title="strong over weak word")
    return figure


def by_size(study: Study) -> xr.Dataset:
    """The fraction by policy and size, N = 1 being a single agent with an empty memory, and κ where there is a law."""
    found = ensembles(study)
    error = np.pad(found["error"].values, ((0, 0), (1, 0)))
    text = "fraction of runs with consensus that agree on the strong word"
    columns = {
        "fraction": (("policy", "n_agents"), np.column_stack([found["individual"], found["collective"]]), text),
        "error": (("policy", "n_agents"), error, "standard error of the fraction"),
        "kappa": ("policy", [_kappa(study, row) for _, row in found.groupby("policy")], "κ of the group-size law"),
        "word": (("policy", "winner"), found["word"].values, "word"),
    }
    names = {name: found[name] for name in ("model", "pair", "winner")}
    return labelled(columns, coords={**names, "n_agents": [1, *found["n_agents"].values]})


def _kappa(study: Study, one: xr.Dataset) -> float:
    """κ for the strong word, negative where the law has the other word as the strong one; NaN without such a law."""
    (policy,) = study.each_policy(model=one["model"].item(), pair=one["pair"].item())
    law = study.kept(f"law_{file_name(policy)}", meanfield.group_size_law, policy, n_agents=[N_AGENTS])
    sign = dict(zip(one["word"].values.flat, (1.0, -1.0), strict=True)).get(law["strong_word"].item(), np.nan)
    return sign * float(law["kappa"].where(law["attractors"] == 2))


@item("004 3", by_size)
def draw_by_size(found: xr.Dataset) -> Figure:
    """Population size and collective bias.

    The fraction of runs that agree on the strong word rises with N until one word always wins; N = 1 is the individual
    bias.

    Thin lines are the group-size law Φ(κ√N), which the paper does not have; 10,000 runs up to N = 200.
    """
    figure, axes = grid_of_panels(len(set(found["model"].values)), width=4.4, height=3.4)
    for axis, row, marker, colour in _rows(found, axes):
        kappa, label = float(row["kappa"]), " over ".join(row["word"].values)
        look = {"fmt": marker, "ms": 4, "color": colour, "label": f"{label} (no law)" if np.isnan(kappa) else label}
        axis.errorbar(row["n_agents"], row["fraction"], yerr=row["error"], **look)
        if not np.isnan(kappa):
            axis.plot(LAW, ndtr(kappa * np.sqrt(LAW)), color=colour, lw=0.7)
    for axis in axes:
        axis.set(xscale="log", xlabel="number of agents N", ylim=SHARE)
        axis.legend(loc="lower right", fontsize=6.5)
    axes[0].set_ylabel("fraction of runs that agree on the strong word")
    return figure


def converged(study: Study, model: str, pair: str) -> xr.Dataset:
    """The fraction of runs with consensus within 1,000 rounds, by size."""
    (policy,) = study.each_policy(model=model, pair=pair)
    table = outcomes(study, policy)
    runs = table["runs"].values
    share = 1 - table["count"].sel(outcome=NO_CONSENSUS).sum("consensus_time").values / runs
    columns = {
        "converged": ("n_agents", share, "fraction of runs that reach consensus"),
        "error": ("n_agents", np.sqrt(share * (1 - share) / runs), "standard error of the fraction"),
    }
    return labelled(columns, coords={name: table[name] for name in ("n_agents", "model", "pair")})


@item(
    {
        "004 S4": ("QWQ_32B", "wife/husband"),
        "004 S5": ("llama31_70B", "young/old"),
        "004 S6": ("llama31_70B", "more/less"),
    },
    converged,
)
def draw_converged(found: xr.Dataset) -> Figure:
    """Runs that reach consensus.

    The fraction of 1,000 runs that reach consensus, by the number of agents.

    10,000 runs up to N = 200.
    """
    figure, axis = plt.subplots(figsize=(4, 3))
    axis.errorbar(found["n_agents"], found["converged"], yerr=found["error"], fmt="o-", ms=4, lw=0.8, color="black")
    axis.set(xscale="log", ylim=SHARE, xlabel="number of agents N", ylabel="fraction of runs that reach consensus")
    axis.set_title(f"{model_name(found['model'].item())}, {in_braces(found['pair'].item().split('/'))}")
    return figure


def modes(study: Study, model: str) -> xr.Dataset:
    """Modes of the consensus time by pair, size and winner, and the fraction of runs that the strong word wins."""
    return ensembles(study, "pair", model=model)[["mode", "collective", "error", "word"]]


@item({f"004 S{9 + k}": [model] for k, model in enumerate(MODELS)}, modes)
def draw_modes(found: xr.Dataset) -> Figure:
    """Mode of the consensus time.

    The mode of the consensus time for each pair as N grows.

    The mode is over the runs that a word wins, of 10,000 up to N = 200 and of 1,000 beyond; it is left out for fewer
    than 50 runs.
    """
    figure, axes = grid_of_panels(found.sizes["pair"], sharey=False)
    for k, axis in enumerate(axes):
        one = found.isel(pair=k)
        for winner, (marker, colour) in LOOKS.items():
            row = one.sel(winner=winner)
            label = f"{row['word'].item()} ({winner})"
            axis.errorbar(row["n_agents"], row["mode"], ms=4, label=label, color=colour, fmt=marker)
        axis.legend(fontsize=7)
    return _titled(figure, axes, found, "mode of the consensus time (round, from 0)")


@item({f"004 S{13 + k}": [model] for k, model in enumerate(MODELS)}, modes)
def draw_bias_and_mode(found: xr.Dataset) -> Figure:
    """Collective bias and consensus time.

    Collective bias and the mode of the consensus time for each pair as N grows.

    Modes are those of Figs. S9 to S12; beside the bias stands the mode of the strong word.
    """
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
    label = "collective bias (circles); mode of the time when the strong word wins (triangles, right)"
    return _titled(figure, axes, found, label)


def _titled(figure: Figure, axes: list[Axes], found: xr.Dataset, label: str) -> Figure:
    for axis, pair in zip(axes, found["pair"].values, strict=True):
        axis.set(xscale="log", title=in_braces(pair.split("/")))
    figure.supxlabel("number of agents N")
    figure.supylabel(label)
    figure.suptitle(model_name(found["model"].item()))
    return figure


def densities(study: Study, pair: str) -> xr.Dataset:
    """The density by model, size and winner: the share of the runs that a word wins that end in this round."""
    found = ensembles(study, "model", pair=pair)[["density", "word"]].sel(n_agents=DENSITY_SIZES)
    models = found["model"].values.tolist()
    return found.sel(model=sorted(models, key=[*MODELS, *models].index))


@item({f"004 S{17 + k}": [pair] for k, pair in enumerate(PAIRS)}, densities)
def draw_densities(found: xr.Dataset) -> Figure:
    """Densities of the consensus time.

    The density of the consensus time for runs that the strong and the weak word win, as N grows, a row a model.

    The panels are at five of the paper's sizes, with 10,000 runs up to N = 200 and 1,000 beyond. The scale is
    logarithmic, so that tails are seen. The strong word is blue and the weak one orange, as in other figures; the paper
    has red and blue. Rows of models that are not at hand are missing.
    """
    rows, columns = found.sizes["model"], found.sizes["n_agents"]
    figure, axes = plt.subplots(rows, columns, figsize=(2.3 * columns, 2.1 * rows + 0.5), squeeze=False)
    for across, model in zip(axes, found["model"].values, strict=True):
        for axis, size in zip(across, DENSITY_SIZES, strict=True):
            one = found.sel(model=model, n_agents=size)
            draw_density(axis, one, 3, 0.8)
            axis.set_title(f"N = {size:,}")
            drawn = (one["density"] > 0).any("winner").values
            if drawn.any():
                axis.set(yscale="log", xlim=(0, max(12, 1.08 * np.flatnonzero(drawn).max())))
        across[0].set_ylabel(f"{model_name(model)}\ndensity")
        across[0].legend(fontsize=7)
    figure.supxlabel("consensus time (round, from 0)")
    figure.suptitle(in_braces(found["pair"].item().split("/")))
    return figure
