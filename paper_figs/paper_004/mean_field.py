"""[004] Figs. S28 to S31: word shares under the rate equation, a panel for each pair."""

from __future__ import annotations

from functools import partial

import xarray as xr
from matplotlib.figure import Figure

import meanfield
from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import LABELS
from paper_figs.mean_field_dynamics import figure

MODELS = {"S28": "phi_4", "S29": "gpt-4o", "S30": "QWQ_32B", "S31": "llama31_70B"}


def numbers(study: Study, model: str) -> xr.Dataset:
    """Word shares by time from empty memories."""
    policies = study.of_model(model)
    stack = study.policies.sel(model=[model])
    return study.kept(f"mean_field_{model}", lambda: meanfield.solve(stack), stack, pairs=len(policies))


def draw(found: xr.Dataset) -> Figure:
    """Strong and weak word by population round."""
    return figure(found)


ITEMS = [
    Item(
        "004",
        number,
        f"Mean-field dynamics, {LABELS[model]}",
        "The word probabilities of each pair under the rate equation.",
        partial(numbers, model=model),
        draw,
        "Population rounds, two units of the time of Eq. 1.",
    )
    for number, model in MODELS.items()
]
