"""[004] Figs. S4 to S6: the fraction of runs that reach consensus, where not all do."""

from __future__ import annotations

from functools import partial

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.figure import Figure

from meanfield.toolbox import labelled
from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import LABELS, styled
from paper_figs.paper_004._ensembles import converged, outcomes

CASES = {"S4": ("QWQ_32B", "wife/husband"), "S5": ("llama31_70B", "young/old"), "S6": ("llama31_70B", "more/less")}


def numbers(study: Study, model: str, pair: str) -> xr.Dataset:
    """The fraction of runs with consensus within 1,000 rounds, by size."""
    table = outcomes(study, study.policy(model, pair))
    share, error = converged(table)
    columns = {
        "converged": ("n_agents", share, "fraction of runs that reach consensus"),
        "error": ("n_agents", error, "standard error of the fraction"),
    }
    return labelled(columns, coords={"n_agents": table["n_agents"].values, "model": model, "pair": pair})


@styled
def draw(found: xr.Dataset) -> Figure:
    """The fraction against the number of agents."""
    figure, axis = plt.subplots(figsize=(4, 3))
    axis.errorbar(found["n_agents"], found["converged"], yerr=found["error"], fmt="o-", ms=4, lw=0.8, color="black")
    axis.set_xscale("log")
    axis.set_ylim(-0.03, 1.03)
    axis.set_xlabel("number of agents N")
    axis.set_ylabel("fraction of runs that reach consensus")
    words = ", ".join(str(found["pair"].item()).split("/"))
    axis.set_title(f"{LABELS[str(found['model'].item())]}, {{{words}}}")
    return figure


ITEMS = [
    Item(
        "004",
        number,
        f"Runs that reach consensus, {LABELS[model]} {{{pair.replace('/', ', ')}}}",
        "The fraction of 1,000 runs that reach consensus, by the number of agents.",
        partial(numbers, model=model, pair=pair),
        draw,
        "10,000 runs up to N = 200.",
    )
    for number, (model, pair) in CASES.items()
]
