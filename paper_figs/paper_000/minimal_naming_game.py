"""[000] Fig. SI3: trajectories of the minimal naming game with two words and a bias."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import validation
from meanfield.toolbox import labelled
from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import styled
from paper_figs.paper_000._real import as_in_001

BIASES = np.round(np.arange(0.0, 1.01, 0.05), 2)
N_AGENTS, RUNS, ROUNDS = 24, 10_000, 30


def numbers(study: Study) -> xr.Dataset:
    """The mean probability of saying the first word, by round and bias."""
    settings = {
        "biases": BIASES.tolist(),
        "n_agents": N_AGENTS,
        "runs": study.runs(RUNS),
        "rounds": ROUNDS,
        "p_invented": "p",
    }
    return study.kept("biased_minimal_naming_game", lambda: _simulated(study), None, **settings)


def _simulated(study: Study) -> xr.Dataset:
    said, won = [], []
    for p in BIASES:
        one = validation.minimal_naming_game.simulate(
            N_AGENTS,
            p=float(p),
            p_invented=float(p),
            runs=study.runs(RUNS),
            seed=study.seed,
            max_rounds=1000,
            record_rounds=ROUNDS,
            progress=study.progress,
        )
        single = one["single_share"].mean("run")
        # Whoever holds both words or none says the first with probability p
        share = single.sel(word="A") + p * (1 - single.sum("word"))
        said.append(share.values)
        won.append(float((one["consensus_word"] == "A").mean()))
    columns = {
        "share": (("p", "round"), np.stack(said), "probability that a random agent says the first word"),
        "won": ("p", won, "fraction of runs that agree on the first word"),
    }
    return labelled(columns, coords={"p": BIASES, "round": np.arange(ROUNDS + 1)})


@styled
def draw(found: xr.Dataset) -> Figure:
    """A line for each bias."""
    figure, axis = plt.subplots(figsize=(5.4, 3.8))
    colours = plt.get_cmap("viridis")
    for p in found["p"].values:
        axis.plot(found["round"], found["share"].sel(p=p), color=colours(float(p)), lw=1)
    figure.colorbar(plt.cm.ScalarMappable(cmap=colours), ax=axis, label="bias p towards the word")
    axis.set_xlabel("population round")
    axis.set_ylabel("production probability of the word")
    axis.set_ylim(-0.03, 1.03)
    return figure


ITEMS = [
    Item(
        "000",
        "SI3",
        "The minimal naming game with a bias",
        "Production probability of a word in 10,000 games of 24 agents for biases in steps of 0.05; a small bias leads "
        "to consensus on the favoured word.",
        numbers,
        draw,
        "Agents who invent a word have the same bias. With p = 0.55, 0.6 and 0.65, 70, 85 and 94 % of the games end at "
        "the favoured word: for 24 agents a small bias makes it likely, not inevitable.",
    )
]
ITEMS += as_in_001(ITEMS, {"SI3": "S3"})
