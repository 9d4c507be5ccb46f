"""Runs of real populations, round by round, and policies estimated from them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd
import xarray as xr

import meanfield
from meanfield import InputError
from meanfield.datasets import RealPopulations
from paper_figs._item import Item
from paper_figs._study import NotAtHandError, Study
from validation.populations import empirical_policy

MODELS = ("llama3", "llama31", "claude", "llama2")  # in the order of the papers
TEN = "Q M X Y F J P R C D"
LETTERS = "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z"
SUCCESS = 0.95  # [001] Methods, of the last 3N interactions


@cache
def _read() -> RealPopulations:
    return meanfield.datasets.ai_norms(ordered=True)


def real_populations(study: Study) -> RealPopulations:
    """All runs that are at hand; NotAtHandError if there are none."""
    try:
        return _read()
    except InputError as error:
        raise NotAtHandError(str(error)) from None


def runs_of(real: RealPopulations, **where: object) -> pd.DataFrame:
    """The runs with these values, or one of several values, in their columns."""
    found = real.runs
    for column, value in where.items():
        found = found.loc[found[column].isin(value if isinstance(value, (list, tuple)) else [value]), :]
    return found


def models_of(real: RealPopulations) -> list[str]:
    """The models at hand, in the order of the papers."""
    known = [model for model in MODELS if model in set(real.runs["model"])]
    return [*known, *sorted({*real.runs["model"]} - {*MODELS})]


def by_round(real: RealPopulations, runs: pd.DataFrame, rounds: int, words: Sequence[str] = ()) -> np.ndarray:
    """The success rate, or the shares of words said, in each N interactions: (run, round), or (run, round, word).

    A run that was stopped keeps what it had in its last 3N interactions; NaN if it was stopped for its length.
    """
    assert real.events is not None
    events = dict(iter(real.events[real.events["run"].isin(runs["run"])].groupby("run")))
    curves = np.full((len(runs), rounds, *([len(words)] if words else [])), np.nan)
    for curve, run in zip(curves, runs.itertuples(), strict=True):
        said = events[run.run][["said", "heard"]].to_numpy(str)
        seen = [(said == word).mean(1) for word in words] if words else [said[:, 0] == said[:, 1]]
        values = np.stack(seen, axis=-1).astype(float)
        whole = min(rounds, len(values) // int(run.n_agents))
        means = values[: whole * run.n_agents].reshape(whole, int(run.n_agents), -1).mean(1)
        last = values[-3 * run.n_agents :].mean(0)
        means = means if words else means[:, 0]
        curve[:whole] = means
        if run.success_last_3N >= SUCCESS:
            curve[whole:] = last if words else last[0]
    return curves


def mean_over_runs(curves: np.ndarray) -> np.ndarray:
    """The mean over runs (run, round); NaN from where on a run was stopped for its length."""
    return curves.mean(0)


def estimated_policy(real: RealPopulations, model: str, options: str, memory_length: int) -> xr.Dataset:
    """The policy estimated from all choices of a model; NotAtHandError if it made none."""
    counts = real.choice_counts
    key = "_".join(sorted(options.split()))
    one = counts[(counts["model"] == model) & (counts["memory_length"] == memory_length) & (counts["options"] == key)]
    if one.empty:
        raise NotAtHandError(f"no run of {model} with {options} and {memory_length} interactions in memory is at hand")
    return empirical_policy(one)


def as_in_001(items: Sequence[Item], numbers: dict[str, str]) -> list[Item]:
    """The same items under the numbers that they have in [001]."""
    return [item._replace(paper="001", number=numbers[item.number]) for item in items if item.number in numbers]
