"""Scores of laws that predict the single choices of agents."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.intervals import forest, limits_of, name_rows
from meanfield._plot.registry import draws
from meanfield._plot.words import PALETTE, model_name

MOST_NAMED = 3  # words in a label
HEIGHT = 0.8  # of the laws of a policy in its row


@draws(
    "choice_scores", view="log_likelihood", by=(), reads="index: model pair memory_length law log_likelihood low high"
)
def log_likelihood(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The mean log-probability of held-out choices under each law, with intervals, a row for each policy."""
    table = part.to_dataframe()
    columns = zip(table["model"], table["pair"], table["memory_length"], strict=True)
    table["name"] = [f"{model_name(model)} {_words(pair)}, H = {length}" for model, pair, length in columns]
    names = table["name"].unique().tolist()
    limits = limits_of(table["low"].to_numpy(), table["high"].to_numpy())
    shifts = np.linspace(-HEIGHT / 2, HEIGHT / 2, table["law"].nunique() + 2)[1:-1]
    for number, (law, rows) in enumerate(table.groupby("law", sort=False)):
        place = np.array([names.index(name) for name in rows["name"]]) + shifts[number]
        look = {"color": PALETTE[number % len(PALETTE)], "label": str(law), "markersize": 4}
        values = (rows[name].to_numpy(dtype=float) for name in ("log_likelihood", "low", "high"))
        forest(axes, place, *values, limits=limits, **{**look, **style})
    name_rows(axes, names)
    axes.set_xlim(*limits)
    axes.set_xlabel("mean ln(probability) of a held-out choice")


def _words(pair: str) -> str:
    words = pair.split("/")
    return "{" + ", ".join(words) + "}" if len(words) <= MOST_NAMED else f"W = {len(words)}"
