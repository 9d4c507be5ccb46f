"""[000] Fig. SI7, and the tables that hold no numbers to compute."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from paper_figs._item import Item
from paper_figs._study import NotAtHandError, Study
from paper_figs._style import LABELS, styled
from paper_figs.paper_000._real import real_populations


def numbers(study: Study) -> xr.Dataset:
    """The accuracy of each model in each question."""
    table = real_populations(study).comprehension
    if table is None or table.empty:
        raise NotAtHandError("no answers to questions about the prompt are at hand")
    table = table.assign(question=[question.replace("#_", "no_") for question in table["question"]])
    weight = table["number"].clip(lower=1)  # 0 where the file does not say it
    columns = {"right": table["accuracy"] * weight, "weight": weight, "number": table["number"]}
    summed = pd.DataFrame(columns).groupby([table["model"], table["question"]]).sum().to_xarray()
    return summed.assign(accuracy=summed["right"] / summed["weight"])[["accuracy", "number"]]


@styled
def draw(found: xr.Dataset) -> Figure:
    """Bars by question, a colour for each model; whiskers are standard errors where numbers are known."""
    figure, axis = plt.subplots(figsize=(7, 3.4))
    models = found["model"].values
    width = 0.8 / len(models)
    for place, model in enumerate(models):
        one = found.sel(model=model)
        asked, share = one["number"].values.astype(float), one["accuracy"].values
        error = np.where(asked > 0, np.sqrt(share * (1 - share) / np.maximum(asked, 1)), np.nan)
        x = np.arange(one["question"].size) + (place - (len(models) - 1) / 2) * width
        name = LABELS.get(str(model), str(model))
        axis.bar(x, share, width, yerr=error, label=name, color=f"C{place}", error_kw={"lw": 0.8})
    axis.axhline(0.8, color="0.5", ls=":", lw=1)
    axis.set_xticks(
        range(found["question"].size), [str(name).replace("no_", "# ") for name in found["question"].values]
    )
    axis.set_ylabel("accuracy")
    axis.set_ylim(0, 1.05)
    figure.legend(loc="outside lower center", ncols=len(models))
    return figure


ITEMS = [
    Item(
        "000",
        "SI7",
        "Questions about the prompt",
        "Accuracy of four models in nine questions; nearly always above 0.8, except Llama 2's count of its actions.",
        numbers,
        draw,
        "The models at hand; the file of Llama 3 has means and no numbers of answers.",
    ),
    Item(
        "000",
        "Table 2",
        "Names and versions of models",
        "The versions of the four models.",
        reason="it holds no numbers to compute",
    ),
    Item(
        "000",
        "Table SI2",
        "Questions about the prompt",
        "Templates of the questions.",
        reason="it holds no numbers; policy_extraction.checks.comprehension asks these questions",
    ),
    Item(
        "000",
        "Table SI3",
        "Parameters of the models",
        "Temperature 0.5, top-k 10, six tokens.",
        reason="it lists settings; policy_extraction takes them as arguments",
    ),
]
