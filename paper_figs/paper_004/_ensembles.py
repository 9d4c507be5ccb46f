"""Ensembles that many figures share: how many runs end at which word in which round, by group size."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import xarray as xr

import validation
from meanfield.toolbox import labelled, words_of
from paper_figs._study import NotAtHandError, Study

MODELS = ("llama31_70B", "gpt-4o", "QWQ_32B", "phi_4")  # in the order of Figs. S9 to S27
SIZES = (2, 4, 6, 8, 10, 16, 24, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
MANY_RUNS, RUNS = 10_000, 1_000
LARGEST_OF_MANY = 200  # up to this size the densities of consensus times take more runs than [004] has
ENOUGH = 50  # runs, for the mode of their times and for the strong word
NO_CONSENSUS = "no consensus"
SHORTEST = 3  # consensus time, in rounds counted from 0: the convention is first tested after four rounds
MARKERS = "os^vD<>pP*X"  # by pair
MAX_ROUNDS = 1000


def outcomes(study: Study, policy: xr.Dataset) -> xr.Dataset:
    """Numbers of runs by group size, outcome and consensus time: `count` (n_agents, outcome, consensus_time), `runs`.

    The consensus time of [004] is the number of the round, counted from 0; runs without consensus stand at the last.
    """
    many, few = study.runs(MANY_RUNS), study.runs(RUNS)
    settings = {"sizes": SIZES, "many": many, "few": few, "max_rounds": MAX_ROUNDS}
    return study.kept(f"outcomes_{file_name(policy)}", lambda: _simulated(study, policy, many, few), policy, **settings)


def _simulated(study: Study, policy: xr.Dataset, many: int, few: int) -> xr.Dataset:
    words = words_of(policy)
    count = np.zeros((len(SIZES), len(words) + 1, MAX_ROUNDS), dtype=np.int64)
    runs = np.array([many if size <= LARGEST_OF_MANY else few for size in SIZES])
    for row, size, number in zip(count, SIZES, runs, strict=True):
        one = validation.simulate(
            policy, n_agents=size, runs=int(number), seed=study.seed, max_rounds=MAX_ROUNDS, progress=study.progress
        ).isel(n_agents=0)
        for place, word in enumerate(words):
            ended = one["consensus_round"].values[one["consensus_word"].values == word]
            row[place] = np.bincount(ended.astype(int) - 1, minlength=MAX_ROUNDS)
        row[-1, -1] = int(one["consensus_word"].isnull().sum())
    columns = {
        "count": (("n_agents", "outcome", "consensus_time"), count, "number of runs"),
        "runs": ("n_agents", runs, "number of runs"),
    }
    coords = {
        "n_agents": list(SIZES),
        "outcome": [*words, NO_CONSENSUS],
        "consensus_time": np.arange(MAX_ROUNDS),
        "model": policy["model"].item(),
        "pair": policy["pair"].item(),
        "individual": ("outcome", [*policy["q"].values[0], np.nan]),
    }
    return labelled(columns, coords=coords)


def file_name(policy: xr.Dataset) -> str:
    """A name for the files of a policy."""
    return re.sub(r"[^\w.-]", "-", f"{policy['model'].item()}_{'_'.join(words_of(policy))}")


def strong_word(table: xr.Dataset) -> str:
    """The word at which most runs end, in the largest group in which enough of them end, or else in all groups."""
    wins = wins_of(table)
    decided = np.flatnonzero(wins.sum("outcome").values >= ENOUGH)
    if not len(decided):
        return str(wins["outcome"].values[int(wins.sum("n_agents").argmax("outcome"))])
    return str(wins["outcome"].values[int(wins.isel(n_agents=decided[-1]).argmax("outcome"))])


def weak_word(table: xr.Dataset) -> str:
    """The word that is not the strong one."""
    strong = strong_word(table)
    return next(str(word) for word in table["outcome"].values[:-1] if word != strong)


def wins_of(table: xr.Dataset) -> xr.DataArray:
    """The number of runs that end at each word, by size (n_agents, outcome)."""
    return table["count"].sum("consensus_time").isel(outcome=slice(0, -1))


def each_outcomes(study: Study, policies: Iterable[xr.Dataset]) -> list[xr.Dataset]:
    """`outcomes` of the policies that reach consensus at some size; NotAtHandError if there are none."""
    tables = [table for policy in policies if int(wins_of(table := outcomes(study, policy)).sum())]
    if not tables:
        raise NotAtHandError("no run of these policies reaches consensus")
    return tables


def collective(table: xr.Dataset, word: str) -> tuple[np.ndarray, np.ndarray]:
    """The fraction of runs with consensus that agree on the word, by size, and its standard error."""
    wins = wins_of(table)
    ended = wins.sum("outcome").values.astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = wins.sel(outcome=word).values / ended
        return share, np.sqrt(share * (1 - share) / ended)


def converged(table: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """The fraction of runs that reach consensus, by size, and its standard error."""
    without = table["count"].sel(outcome=NO_CONSENSUS).sum("consensus_time").values
    runs = table["runs"].values
    share = 1 - without / runs
    return share, np.sqrt(share * (1 - share) / runs)


def modal_time(table: xr.Dataset, word: str) -> np.ndarray:
    """The most frequent consensus time of runs that agree on the word, by size; NaN where few of them do."""
    count = table["count"].sel(outcome=word)
    mode = count.argmax("consensus_time").values.astype(float)
    return np.where(count.sum("consensus_time").values >= ENOUGH, mode, np.nan)
