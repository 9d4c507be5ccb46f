"""[000] Figs. 1, SI4 and SI5: how populations come to agree."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import validation
from meanfield.datasets import RealPopulations
from meanfield.toolbox import labelled
from paper_figs._item import Item
from paper_figs._study import NotAtHandError, Study
from paper_figs._style import LABELS, styled
from paper_figs.paper_000._real import (
    LETTERS,
    TEN,
    as_in_001,
    by_round,
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
POOLS = ("Q M", "F J", "X Y", "Alice Bob")
SETTINGS = (("Q M", 5, 24), ("Q M", 5, 200), ("Q M", 3, 24), ("Q M F J X Y", 5, 24), (TEN, 5, 24), (LETTERS, 5, 24))


def emergence(study: Study) -> xr.Dataset:
    """Success by round of every model with ten words, of the two minimal naming games, and the words of one run."""
    real = real_populations(study)
    runs = {model: runs_of(real, model=model, options=TEN, experiment="from_empty") for model in models_of(real)}
    runs = {model: some for model, some in runs.items() if len(some)}
    if not runs:
        raise NotAtHandError("no run with ten words is at hand")
    games = study.kept(
        "success_of_ten_words", lambda: _games(study), None, runs=study.runs(GAMES), rounds=ROUNDS, size=N_AGENTS
    )
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


def _games(study: Study) -> xr.Dataset:
    means = []
    for stores in (True, False):
        game = validation.minimal_naming_game.simulate(
            N_AGENTS,
            n_words=10,
            stores_invented=stores,
            runs=study.runs(GAMES),
            seed=study.seed,
            max_rounds=ROUNDS,
            record_rounds=ROUNDS,
        )
        means.append(game["success_rate"].mean("run").values[1:])
    columns = {"success_rate": (("stores_invented", "round"), np.stack(means), "mean success rate")}
    return labelled(columns, coords={"stores_invented": [True, False]})


@styled
def draw_emergence(found: xr.Dataset) -> Figure:
    """A: success by round; B: words in one run."""
    figure, (success, words) = plt.subplots(1, 2, figsize=(9.5, 3.8))
    for place, model in enumerate(found["model"].values):
        one = found.sel(model=model)
        label = f"{LABELS.get(str(model), model)}, mean of {int(one['runs'])} runs"
        _curves(success, found["round"], one["success_rate"].values, f"C{place}", label)
    for game, style, name in zip(found["game"].values, ("--", ":"), ("standard", "inventions not stored"), strict=True):
        success.plot(found["round"], game, style, color="black", label=f"minimal naming game, {name}")
    success.set_title("(A) W = 10")
    for place, word in enumerate(found["word"].values):
        share = found["word_said"].sel(word=word)
        words.plot(found["round"], share, marker="os^vD<>pP*"[place % 10], ms=3, lw=1, label=str(word))
    words.set_title("(B) words in one run")
    words.set_ylabel("share of words said")
    words.legend(ncols=2)
    _finish(success, "success rate")
    words.set_xlabel("population round")
    words.set_xlim(0, 20)
    return figure


def _curves(axis: Axes, rounds: xr.DataArray, runs: np.ndarray, colour: str, label: str) -> None:
    """The mean of runs (run, round), thick, and the first few, thin."""
    runs = runs[~np.isnan(runs).all(1)]  # fewer than of another setting
    for run in runs[:SHOWN]:
        axis.plot(rounds, run, color=colour, lw=0.5, alpha=0.5)
    axis.plot(rounds, runs.mean(0), color=colour, lw=2, label=label)


def _finish(axis: Axes, name: str) -> None:
    axis.set_ylabel(name)
    axis.set_xlabel("population round")
    axis.set_ylim(-0.03, 1.03)
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
    policy = estimated_policy(real, "llama3", options, 5)
    runs = study.runs(SIMULATED)

    def make() -> xr.Dataset:
        one = validation.simulate(
            policy,
            n_agents=N_AGENTS,
            runs=runs,
            seed=study.seed,
            record=["said", "success_rate"],
            record_rounds=ROUNDS,
            progress=study.progress,
        )
        return one[["said", "success_rate"]].isel(n_agents=0).mean("run")

    found = study.kept(f"pool_{options.replace(' ', '_')}", make, policy, runs=runs, rounds=ROUNDS, size=N_AGENTS)
    return found["success_rate"].values[1:], found["said"].sel(word=word).values[1:]


@styled
def draw_pools(found: xr.Dataset) -> Figure:
    """A: success; B: the strong word. Dashed: simulated."""
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8))
    sides = zip(axes, ("success_rate", "strong_share"), ("simulated_success", "simulated_share"), strict=True)
    for axis, name, simulated in sides:
        for place, pool in enumerate(found["pool"].values):
            one = found.sel(pool=pool)
            label = f"{{{str(pool).replace(' ', ', ')}}}: {one['strong_word'].item()}, {int(one['wins'])} of 40"
            _curves(axis, found["round"], one[name].values, f"C{place}", label)
            axis.plot(found["round"], one[simulated], "--", color=f"C{place}", lw=1.2)
        axis.plot([], [], "--", color="0.4", label="simulated with the estimated policy")
    for axis, name in zip(axes, ("success rate", "share of the strong word"), strict=True):
        _finish(axis, name)
        axis.get_legend().remove()
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
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


@styled
def draw_robustness(found: xr.Dataset) -> Figure:
    """Mean success by round for each setting."""
    figure, axis = plt.subplots(figsize=(5.6, 3.8))
    for place, setting in enumerate(found["model"].values):
        one = found.sel(model=setting)
        label = f"{setting}: {int(one['runs'])} runs"
        _curves(axis, found["round"], one["success_rate"].values, f"C{place}", label)
    _finish(axis, "success rate")
    return figure


ITEMS = [
    Item(
        "000",
        "1",
        "The spontaneous emergence of conventions",
        "Success rate by time for four models, N = 24 and W = 10, means of 40 runs and some of them, and of the "
        "minimal naming game; and the competition of words in one run of Llama 3.1.",
        emergence,
        draw_emergence,
        "Real runs of the models at hand; 10,000 minimal naming games of each kind: the standard one, and one in which "
        "a speaker does not store the word it invents. Ten words in five interactions have 10¹⁰ memories, too many to "
        "estimate a policy: simulations of estimated policies are in Fig. SI4. A run that was stopped keeps its last "
        "success rate in the mean. [001] plots error bars of the shares in (B).",
    ),
    Item(
        "000",
        "SI4",
        "Emergence with two words",
        "Success rate and production probability of the strong word for four pools of two words, Llama 3, H = 5; it "
        "wins 40, 24, 40 and 40 of 40 runs.",
        pools,
        draw_pools,
        "The same runs. Dashed: means of 2,000 populations simulated with the policy estimated from all choices of "
        "Llama 3 with these words, which include the runs shown.",
    ),
    Item(
        "000",
        "SI5",
        "Robustness",
        "Success rate of Llama 3 with other numbers of words, agents and remembered interactions.",
        robustness,
        draw_robustness,
        "The paper does not list its settings; these are those with runs at hand. Runs of N = 200 were stopped when 72 "
        "interactions in a row had succeeded, and are taken to go on so.",
    ),
]
ITEMS += as_in_001(ITEMS, {"1": "1", "SI4": "S6", "SI5": "S2"})
