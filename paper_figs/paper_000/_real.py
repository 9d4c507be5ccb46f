"""Runs of real populations, round by round, and policies estimated from them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes

import meanfield
from meanfield import InputError
from meanfield.datasets import RealPopulations
from paper_figs._study import NotAtHandError, Study
from validation.populations import empirical_policy, winners

MODELS = ("llama3", "llama31", "claude", "llama2")  # in the order of the papers
TEN = "Q M X Y F J P R C D"
LETTERS = "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z"
SUCCESS = 0.95  # [001] Methods, of the last 3N interactions
WINDOW = 72  # interactions, by whose success runs were stopped, whatever N


def real_populations(study: Study) -> RealPopulations:
    """All runs that are at hand, read once; NotAtHandError if there are none."""
    found = _read(os.environ.get("MEANFIELD_DATA", ""), study.progress)
    if isinstance(found, InputError):
        raise NotAtHandError(str(found))
    return found


@cache
def _read(place: str, progress: bool) -> RealPopulations | InputError:
    """The runs in that folder, or what stands in the way."""
    try:
        return meanfield.datasets.ai_norms(ordered=True, progress=progress)
    except InputError as error:
        return error


def runs_of(real: RealPopulations, **where: object) -> pd.DataFrame:
    """The runs with these values in their columns; `options` in any order."""
    found = real.runs
    if "options" in where:
        words = sorted(str(where.pop("options")).split())
        found = found.loc[[sorted(str(options).split()) == words for options in found["options"]], :]
    for column, value in where.items():
        found = found.loc[found[column] == value, :]
    return found


def models_of(real: RealPopulations) -> list[str]:
    """The models at hand, in the order of the papers."""
    known = [model for model in MODELS if model in set(real.runs["model"])]
    return [*known, *sorted({*real.runs["model"]} - {*MODELS})]


def by_round(real: RealPopulations, runs: pd.DataFrame, rounds: int, words: Sequence[str] = ()) -> np.ndarray:
    """The success rate, or the shares of words said, in each N interactions: (run, round), or (run, round, word).

    A run that agreed keeps what it had in its last 72 (or 3N) interactions; NaN after one that was stopped for its
    length.
    """
    assert real.events is not None
    events = dict(iter(real.events[real.events["run"].isin(runs["run"])].groupby("run")))
    curves = np.full((len(runs), rounds, max(1, len(words))), np.nan)
    for curve, run in zip(curves, runs.itertuples(), strict=True):
        said, n_agents = events[run.run][["said", "heard"]].to_numpy(str), int(run.n_agents)
        seen = [(said == word).mean(1) for word in words] if words else [said[:, 0] == said[:, 1]]
        values = np.stack(seen, axis=-1).astype(float)
        whole = min(rounds, len(values) // n_agents)
        curve[:whole] = values[: whole * n_agents].reshape(whole, n_agents, -1).mean(1)
        if bool(run.converged) or float(run.success_last_3N) >= SUCCESS:
            curve[whole:] = values[-min(WINDOW, 3 * n_agents) :].mean(0)
    return curves if words else curves[..., 0]


def estimated_policy(real: RealPopulations, model: str, options: str, memory_length: int) -> xr.Dataset:
    """The policy estimated from all choices of a model; NotAtHandError if it made none."""
    counts = real.choice_counts
    key = "_".join(sorted(options.split()))
    one = counts[(counts["model"] == model) & (counts["memory_length"] == memory_length) & (counts["options"] == key)]
    if one.empty:
        raise NotAtHandError(f"no run of {model} with {options} and {memory_length} interactions in memory is at hand")
    return empirical_policy(one)


def winners_of(runs: pd.DataFrame) -> pd.DataFrame:
    """Which words win; NotAtHandError if there is no run from empty memories."""
    if "from_empty" not in {*runs["experiment"]}:
        raise NotAtHandError("no run from empty memories with these words is at hand")
    return winners(runs)


def draw_runs(axis: Axes, rounds: xr.DataArray, runs: np.ndarray, colour: str, label: str, shown: int | None) -> None:
    """The mean of runs (run, round), thick, and some of them, thin."""
    runs = runs[~np.isnan(runs).all(1)]  # fewer than of another setting
    for run in runs[:shown]:
        axis.plot(rounds, run, color=colour, lw=0.5, alpha=0.5)
    axis.plot(rounds, runs.mean(0), color=colour, lw=2, label=label)
