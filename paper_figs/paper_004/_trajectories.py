"""Trajectories of words said, round by round as [004] counts them, by the word on which a run agrees."""

from __future__ import annotations

import numpy as np
import xarray as xr

import validation
from meanfield.toolbox import labelled
from paper_figs._study import Study
from paper_figs.paper_004._ensembles import file_name

OUTCOMES = ("strong", "weak", "none")


def said(
    study: Study, policy: xr.Dataset, strong: str, *, n_agents: int, runs: int, rounds: int, shown: int
) -> xr.Dataset:
    """The share of the strong word in what is said, by outcome.

    `trajectory` (outcome, run, round) of up to `shown` runs of each outcome, `mean` (outcome, round) over all of them,
    `number` (outcome) of runs. Round 0 is the first that is played.
    """
    settings = {"n_agents": n_agents, "runs": study.runs(runs), "rounds": rounds, "shown": shown, "strong": strong}
    name = f"said_{file_name(policy)}_{n_agents}"
    return study.kept(name, lambda: _simulated(study, policy, **settings), policy, **settings)


def _simulated(
    study: Study, policy: xr.Dataset, *, strong: str, n_agents: int, runs: int, rounds: int, shown: int
) -> xr.Dataset:
    one = validation.simulate(
        policy, n_agents=n_agents, runs=runs, seed=study.seed, record=["said"], record_rounds=rounds
    ).isel(n_agents=0)
    share = one["said"].sel(word=strong).transpose("run", "round").values[:, 1:]
    winner = one["consensus_word"].values
    none = one["consensus_word"].isnull().values
    members = [~none & (winner == strong), ~none & (winner != strong), none]
    trajectory = np.full((len(members), shown, rounds), np.nan)
    mean = np.full((len(members), rounds), np.nan)
    for place, member in enumerate(members):
        runs_of_it = share[member]
        trajectory[place, : len(runs_of_it)] = runs_of_it[:shown]
        if len(runs_of_it):
            mean[place] = runs_of_it.mean(0)
    columns = {
        "trajectory": (
            ("outcome", "trajectory_number", "round"),
            trajectory,
            "share of the strong word in what is said",
        ),
        "mean": (("outcome", "round"), mean, "mean over runs of this outcome"),
        "number": ("outcome", [int(member.sum()) for member in members], "number of runs"),
        "individual": ((), float(policy["q"].sel(word=strong)[0]), "probability of the strong word, memory empty"),
    }
    coords = {"outcome": list(OUTCOMES), "round": np.arange(rounds), "n_agents": n_agents, "strong_word": strong}
    return labelled(columns, coords={**coords, "model": policy["model"].item(), "pair": policy["pair"].item()})
