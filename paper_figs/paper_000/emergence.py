"""[000] Figs. 1 and SI3 to SI5: how populations and minimal naming games come to agree."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import validation
from meanfield.datasets import RealPopulations
from meanfield.toolbox import in_braces, labelled, model_name
from paper_figs._item import item
from paper_figs._study import NotAtHandError, Study
from paper_figs._style import SHARE, legend_below, no_legend
from paper_figs.paper_000._real import (
    LETTERS,
    TEN,
    by_round,
    draw_runs,
    estimated_policy,
    models_of,
    real_populations,
    runs_of,
)

ROUNDS = 40
SHOWN = 5
GAMES = 10_000
SIMULATED = 2000
N_AGENTS = 24
BIASES = np.round(np.arange(0.0, 1.01, 0.05), 2)
RUNS = 10_000  # of biased games
POOLS = ("Q M", "F J", "X Y", "Alice Bob")
SETTINGS = (("Q M", 5, 24), ("Q M", 5, 200), ("Q M", 3, 24), ("Q M F J X Y", 5, 24), (TEN, 5, 24), (LETTERS, 5, 24))


def emergence(study: Study) -> xr.Dataset:
    """Success by round of every model with ten words, of the two minimal naming games, and the words of one run."""
    real = real_populations(study)
    runs = {model: runs_of(real, model=model, options=TEN, experiment="from_empty") for model in models_of(real)}
    runs = {model: some for model, some in runs.items() if len(some)}
    if not runs:
        raise NotAtHandError("no run with ten words is at hand")
    options = {"runs": study.runs(GAMES), "seed": study.seed, "max_rounds": ROUNDS, "record_rounds": ROUNDS}
    games = study.kept("success_of_ten_words", _games, n_words=10, **options)
    one = runs.get("llama31", next(iter(runs.values()))).iloc[:1]
    words = one["options"].item().split()
    columns = {
        **_success(real, runs),
        "game": (("stores_invented", "round"), games["success_rate"].values, "success rate of minimal naming games"),
        "word_said": (("round", "word"), by_round(real, one, ROUNDS, words)[0], "share of words said in one run"),
    }
    coords = {"model": list(runs), "round": np.arange(1, ROUNDS + 1), "stores_invented": [True, False], "word": words}
    return labelled(columns, coords=coords)


def _success(real: RealPopulations, runs: dict[str, pd.DataFrame]) -> dict:
    curves = {name: by_round(real, some, ROUNDS) for name, some in runs.items()}
    most = max(map(len, curves.values()))
    padded = [np.pad(curve, ((0, most - len(curve)), (0, 0)), constant_values=np.nan) for curve in curves.values()]
    dims = ("model", "run", "round")
    return {
        "success_rate": (dims, np.stack(padded), "share of a round's interactions that succeed"),
        "runs": ("model", [len(curve) for curve in curves.values()], "number of runs"),
    }


def _games(**options: int) -> xr.Dataset:
    means = []
    for stores in (True, False):
        game = validation.minimal_naming_game.simulate(N_AGENTS, stores_invented=stores, **options)
        means.append(game["success_rate"].mean("run").values[1:])
    columns = {"success_rate": (("stores_invented", "round"), np.stack(means), "mean success rate")}
    return labelled(columns, coords={"stores_invented": [True, False]})


@item("000 1, 001 1", emergence)
def draw_emergence(found: xr.Dataset) -> Figure:
    """The spontaneous emergence of conventions.

    Success rate by time for four models, N = 24 and W = 10, means of 40 runs and some of them, and of the minimal
    naming game; and the competition of words in one run of Llama 3.1.

    Real runs of the models at hand; 10,000 minimal naming games of each kind: the standard one, and one in which a
    speaker does not store the word it invents. Ten words in five interactions have 10¹⁰ memories, too many to estimate
    a policy: simulations of estimated policies are in Fig. SI4. A run that was stopped keeps its last success rate in
    the mean. [001] plots error bars of the shares in (B).
    """
    figure, (success, words) = plt.subplots(1, 2, figsize=(9.5, 3.8))
    _success_of_each(success, found, "{}, mean of {} runs")
    for game, style, name in zip(found["game"].values, ("--", ":"), ("standard", "inventions not stored"), strict=True):
        success.plot(found["round"], game, style, color="black", label=f"minimal naming game, {name}")
    success.set_title("(A) W = 10")
    for place, word in enumerate(found["word"].values):
        share = found["word_said"].sel(word=word)
        words.plot(found["round"], share, marker="os^vD<>pP*"[place % 10], ms=3, lw=1, label=str(word))
    words.set(title="(B) words in one run", ylabel="share of words said", xlabel="population round", xlim=(0, 20))
    words.legend(ncols=2)
    _finish(success, "success rate")
    return figure


def _success_of_each(axis: Axes, found: xr.Dataset, label: str) -> None:
    for k, (name, number) in enumerate(zip(map(model_name, found["model"].values), found["runs"].values, strict=True)):
        runs = found["success_rate"].isel(model=k).values
        draw_runs(axis, found["round"], runs, f"C{k}", label.format(name, number), SHOWN)


def _finish(axis: Axes, name: str) -> None:
    axis.set(ylabel=name, xlabel="population round", ylim=SHARE)
    axis.legend(fontsize=7)


def pools(study: Study) -> xr.Dataset:
    """Success and share of the strong word of Llama 3 with four pools of two words; real and simulated."""
    real = real_populations(study)
    success, share, strong, wins, simulated = [], [], [], [], []
    for options in POOLS:
        runs = runs_of(real, model="llama3", options=options, experiment="from_empty", memory_length=5, n_agents=24)
        if runs.empty:
            raise NotAtHandError(f"the runs of Llama 3 with {options} are not at hand")
        word = str(runs["majority_word_last_3N"].mode().item())
        success.append(by_round(real, runs, ROUNDS))
        share.append(by_round(real, runs, ROUNDS, [word])[..., 0])
        strong.append(word)
        wins.append(int((runs["majority_word_last_3N"] == word).sum()))
        simulated.append(_simulated(study, real, options, word))
    dims = ("pool", "run", "round")
    columns = {
        "success_rate": (dims, np.stack(success), "share of a round's interactions that succeed"),
        "strong_share": (dims, np.stack(share), "share of the strong word in what is said"),
        "simulated_success": (("pool", "round"), np.stack([one[0] for one in simulated]), "mean of simulated runs"),
        "simulated_share": (("pool", "round"), np.stack([one[1] for one in simulated]), "mean of simulated runs"),
        "strong_word": ("pool", strong, "strong word"),
        "wins": ("pool", wins, "runs that agree on it"),
    }
    return labelled(columns, coords={"pool": list(POOLS), "round": np.arange(1, ROUNDS + 1)})


def _simulated(study: Study, real: RealPopulations, options: str, word: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean success and share of the word, by round, of populations with the policy estimated from the real ones."""

    def make(policy: xr.Dataset, **options: Any) -> xr.Dataset:
        one = validation.simulate(policy, record=["said", "success_rate"], **options)
        return one[["said", "success_rate"]].isel(n_agents=0).mean("run")

    policy = estimated_policy(real, "llama3", options, 5)
    simulation = {"n_agents": N_AGENTS, "record_rounds": ROUNDS, **study.effort(SIMULATED)}
    found = study.kept(f"pool_{options.replace(' ', '_')}", make, policy, **simulation)
    return found["success_rate"].values[1:], found["said"].sel(word=word).values[1:]


@item("000 SI4, 001 S6", pools)
def draw_pools(found: xr.Dataset) -> Figure:
    """Emergence with two words.

    Success rate and production probability of the strong word for four pools of two words, Llama 3, H = 5; it wins 40,
    24, 40 and 40 of 40 runs.

    The same runs. Dashed: means of 2,000 populations simulated with the policy estimated from all choices of Llama 3
    with these words, which include the runs shown.
    """
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8))
    titles = {"success": "success rate", "share": "share of the strong word"}
    for axis, name, what in zip(axes, ("success_rate", "strong_share"), titles, strict=True):
        for place, pool in enumerate(found["pool"].values):
            one = found.sel(pool=pool)
            label = f"{in_braces(pool.split())}: {one['strong_word'].item()}, {int(one['wins'])} of 40"
            draw_runs(axis, found["round"], one[name].values, f"C{place}", label, SHOWN)
            axis.plot(found["round"], one[f"simulated_{what}"], "--", color=f"C{place}", lw=1.2)
        axis.plot([], [], "--", color="0.4", label="simulated with the estimated policy")
        _finish(axis, titles[what])
        no_legend(axis)
    legend_below(figure, axes[1], 3)
    return figure


def robustness(study: Study) -> xr.Dataset:
    """Success by round of Llama 3 with other numbers of words, agents and interactions in memory."""
    real = real_populations(study)
    runs = {}
    for options, memory_length, n_agents in SETTINGS:
        where = {"options": options, "memory_length": memory_length, "n_agents": n_agents}
        some = runs_of(real, model="llama3", experiment="from_empty", **where)
        if len(some):
            runs[f"W = {len(options.split())}, H = {memory_length}, N = {n_agents}"] = some
    if not runs:
        raise NotAtHandError("the runs of Llama 3 are not at hand")
    return labelled(_success(real, runs), coords={"model": list(runs), "round": np.arange(1, ROUNDS + 1)})


@item("000 SI5, 001 S2", robustness)
def draw_robustness(found: xr.Dataset) -> Figure:
    """Robustness.

    Success rate of Llama 3 with other numbers of words, agents and remembered interactions.

    The paper does not list its settings; these are those with runs at hand. Runs of N = 200 were stopped when 72
    interactions in a row had succeeded, and are taken to go on so.
    """
    figure, axis = plt.subplots(figsize=(5.6, 3.8))
    _success_of_each(axis, found, "{}: {} runs")
    _finish(axis, "success rate")
    return figure


def biased_games(study: Study) -> xr.Dataset:
    """The mean probability of saying the first word in minimal naming games, by round and bias."""
    options = {"max_rounds": 1000, "record_rounds": 30, **study.effort(RUNS)}
    return study.kept("biased_minimal_naming_game", _biased_games, biases=BIASES.tolist(), **options)


def _biased_games(biases: list[float], **options: Any) -> xr.Dataset:
    said, won = [], []
    for p in biases:
        one = validation.minimal_naming_game.simulate(N_AGENTS, p=p, p_invented=p, **options)
        single = one["single_share"].mean("run")
        # Whoever holds both words or none says the first with probability p
        said.append(single.sel(word="A").values + p * (1 - single.sum("word").values))
        won.append(float((one["consensus_word"] == "A").mean()))
    columns = {
        "share": (("p", "round"), np.stack(said), "probability that a random agent says the first word"),
        "won": ("p", won, "fraction of runs that agree on the first word"),
    }
    return labelled(columns, coords={"p": biases, "round": np.arange(len(said[0]))})


@item("000 SI3, 001 S3", biased_games)
def draw_biased_games(found: xr.Dataset) -> Figure:
    """The minimal naming game with a bias.

    Production probability of a word in 10,000 games of 24 agents for biases in steps of 0.05; a small bias leads to
    consensus on the favoured word.

    Agents who invent a word have the same bias. With p = 0.55, 0.6 and 0.65, 70, 85 and 94 % of the games end at the
    favoured word: for 24 agents a small bias makes it likely, not inevitable.
    """
    figure, axis = plt.subplots(figsize=(5.4, 3.8))
    colours = plt.get_cmap("viridis")
    for p in found["p"].values:
        axis.plot(found["round"], found["share"].sel(p=p), color=colours(float(p)), lw=1)
    figure.colorbar(plt.cm.ScalarMappable(cmap=colours), ax=axis, label="bias p towards the word")
    axis.set(xlabel="population round", ylabel="production probability of the word", ylim=SHARE)
    return figure
