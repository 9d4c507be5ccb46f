"""Ensembles that many figures share: which word wins in which round, by group size, and what is said on the way."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

import validation
from meanfield.toolbox import labelled, words_of
from paper_figs._study import NotAtHandError, Study
from paper_figs._style import FIRST_WORD, SECOND_WORD

MODELS = ("llama31_70B", "gpt-4o", "QWQ_32B", "phi_4")  # in the order of Figs. S9 to S27
SIZES = (2, 4, 6, 8, 10, 16, 24, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
MANY_RUNS, RUNS = 10_000, 1_000
LARGEST_OF_MANY = 200  # up to this size the densities of consensus times take more runs than [004] has
ENOUGH = 50  # runs, for the mode of their times and for the strong word
NO_CONSENSUS = "no consensus"
SHORTEST = 3  # consensus time, in rounds counted from 0: the convention is first tested after four rounds
MAX_ROUNDS = 1000
LOOKS = {"strong": ("o", FIRST_WORD), "weak": ("^", SECOND_WORD)}


def file_name(policy: xr.Dataset) -> str:
    """A name for the files of a policy."""
    return re.sub(r"[^\w.-]", "-", f"{policy['model'].item()}_{'_'.join(words_of(policy))}")


def outcomes(study: Study, policy: xr.Dataset, each: int | None = None, sizes: Sequence[int] = ()) -> xr.Dataset:
    """Numbers of runs by group size, outcome and consensus time: `count` (n_agents, outcome, consensus_time), `runs`.

    The consensus time of [004] is the number of the round, counted from 0; runs without consensus stand at the last.
    `each` is a number of runs for other `sizes` than those of most figures.
    """
    sizes = list(sizes or SIZES)
    runs = [study.runs(each or (MANY_RUNS if size <= LARGEST_OF_MANY else RUNS)) for size in sizes]
    options = {"max_rounds": MAX_ROUNDS, "seed": study.seed, "progress": study.progress}
    name = f"outcomes_{file_name(policy)}" + (f"_{each}" if each else "")
    return study.kept(name, _counted, policy, sizes, runs, **options)


def _counted(policy: xr.Dataset, sizes: list[int], runs: list[int], max_rounds: int, **options: Any) -> xr.Dataset:
    words = words_of(policy)
    count = np.zeros((len(sizes), len(words) + 1, max_rounds), dtype=np.int64)
    for row, size, number in zip(count, sizes, runs, strict=True):
        one = validation.simulate(policy, n_agents=size, runs=number, max_rounds=max_rounds, **options)
        for place, word in enumerate(words):
            ended = one["consensus_round"].values[one["consensus_word"].values == word]
            row[place] = np.bincount(ended.astype(int) - 1, minlength=max_rounds)
        row[-1, -1] = int(one["consensus_word"].isnull().sum())
    columns = {
        "count": (("n_agents", "outcome", "consensus_time"), count, "number of runs"),
        "runs": ("n_agents", np.array(runs), "number of runs"),
    }
    coords = {
        "n_agents": sizes,
        "outcome": [*words, NO_CONSENSUS],
        "consensus_time": np.arange(max_rounds),
        "model": policy["model"].item(),
        "pair": policy["pair"].item(),
        "individual": ("outcome", [*policy["q"].values[0], np.nan]),
    }
    return labelled(columns, coords=coords)


def by_winner(table: xr.Dataset) -> xr.Dataset:
    """How many runs of `outcomes` the strong and the weak word win, and when these end.

    The strong word wins most runs at the largest size at which enough reach consensus, or else over all sizes. The
    mode is the most frequent consensus time, NaN where few runs end at the word.
    """
    wins = table["count"].values[:, :-1].sum(-1)
    decided = np.flatnonzero(wins.sum(-1) >= ENOUGH)
    strong = int(np.argmax(wins[decided[-1]] if len(decided) else wins.sum(0)))
    order = [strong, 1 - strong]
    count, wins, ended = table["count"].values[:, order], wins[:, order], wins.sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = wins[:, 0] / ended
        error = np.sqrt(share * (1 - share) / ended)
    modes = np.where(wins >= ENOUGH, count.argmax(-1), np.nan)
    density, over = count / wins.clip(min=1)[..., None], ("n_agents", "winner", "consensus_time")
    columns = {
        "word": ("winner", table["outcome"].values[order], "word"),
        "individual": ((), table["individual"].values[strong], "probability of the strong word with an empty memory"),
        "runs": ("n_agents", ended, "number of runs with consensus"),
        "collective": ("n_agents", share, "fraction of runs with consensus that agree on the strong word"),
        "error": ("n_agents", error, "standard error of the fraction"),
        "mode": (("winner", "n_agents"), modes.T, "mode of the consensus time", "rounds"),
        "density": (over, density, "share of the runs that this word wins", "1/round"),
    }
    names = ("n_agents", "consensus_time", "model", "pair")
    return labelled(columns, {**{name: table[name] for name in names}, "winner": ["strong", "weak"]})


def ensembles(study: Study, along: str = "policy", **labels: str) -> xr.Dataset:
    """`by_winner` of the policies with these labels that reach consensus at some size, `along` a dim.

    NotAtHandError if there are none.
    """
    tables = [by_winner(outcomes(study, policy)) for policy in study.each_policy(**labels)]
    tables = [table for table in tables if table["runs"].any()]
    if not tables:
        raise NotAtHandError("no run of these policies reaches consensus")
    names = ["model", "pair"] if along == "policy" else []
    return xr.concat(tables, along, coords=names, compat="override", combine_attrs="override")


def said(
    study: Study, policy: xr.Dataset, strong: str, *, n_agents: int, runs: int, rounds: int, shown: int
) -> xr.Dataset:
    """The share of the strong word in what is said, by outcome.

    `trajectory` (outcome, run, round) of up to `shown` runs of each outcome, `mean` (outcome, round) over all of them,
    `number` (outcome) of runs. Round 0 is the first that is played.
    """
    options = {"n_agents": n_agents, "runs": study.runs(runs), "rounds": rounds, "shown": shown, "seed": study.seed}
    return study.kept(f"said_{file_name(policy)}_{n_agents}", _said, policy, strong, **options)


def _said(policy: xr.Dataset, strong: str, *, rounds: int, shown: int, **options: Any) -> xr.Dataset:
    played = validation.simulate(policy, record=["said"], record_rounds=rounds, **options)
    one = played.isel(n_agents=0)
    share = one["said"].sel(word=strong).transpose("run", "round").values[:, 1:]
    winner, none = one["consensus_word"].values, one["consensus_word"].isnull().values
    members = [share[~none & (winner == strong)], share[~none & (winner != strong)], share[none]]
    trajectory = np.full((3, shown, rounds), np.nan)
    mean = np.full((3, rounds), np.nan)
    for place, member in enumerate(members):
        trajectory[place, : len(member)] = member[:shown]
        if len(member):
            mean[place] = member.mean(0)
    text = "share of the strong word in what is said"
    columns = {
        "trajectory": (("outcome", "trajectory_number", "round"), trajectory, text),
        "mean": (("outcome", "round"), mean, "mean over runs of this outcome"),
        "number": ("outcome", list(map(len, members)), "number of runs"),
        "individual": ((), float(policy["q"].sel(word=strong)[0]), "probability of the strong word, memory empty"),
    }
    coords = {"outcome": ["strong", "weak", "none"], "round": np.arange(rounds), "strong_word": strong}
    coords |= {name: policy[name].item() for name in ("model", "pair")}
    return labelled(columns, coords=coords | {"n_agents": played["n_agents"].item()})


def draw_both_words(axis: Axes, time: np.ndarray, shares: np.ndarray, **style: float) -> None:
    """The shares (run, round) of the strong word, and of the weak one."""
    for share in shares:
        axis.plot(time, share, color=FIRST_WORD, **style)
        axis.plot(time, 1 - share, color=SECOND_WORD, **style)


def draw_density(axis: Axes, one: xr.Dataset, size: float, width: float) -> None:
    """The densities of the consensus time, and a line at the shortest."""
    for winner, (marker, colour) in LOOKS.items():
        row = one.sel(winner=winner)
        seen, label = row["density"].values > 0, f"{row['word'].item()} ({winner})"
        time, density = row["consensus_time"].values[seen], row["density"].values[seen]
        axis.plot(time, density, marker, ms=size, color=colour, label=label)
    axis.axvline(SHORTEST, color="red", ls=":", lw=width)
