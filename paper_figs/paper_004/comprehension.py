"""[004] Fig. S1 and Table S2: questions to a model about its prompt."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.toolbox import labelled
from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import model_title, styled
from paper_figs.paper_004._smollm2 import model
from policy_extraction.checks import KINDS, comprehension

WORDS, MEMORY_LENGTH = ("his", "her"), 3
PORTIONS, MEMORIES, PER_KIND = 3, 4, 1  # answers are kept after each portion


def numbers(study: Study) -> xr.Dataset:
    """The model's answers about random memories, a question of each kind for each memory."""
    portions = [_portion(study, number) for number in range(study.runs(PORTIONS))]
    answers = xr.concat(
        portions, "agent", coords=["memory"], compat="override", data_vars="minimal", combine_attrs="override"
    )
    correct = answers["correct"]
    error = correct.std("agent", ddof=1) / np.sqrt(correct.sizes["agent"])
    return answers.assign(accuracy=correct.mean("agent"), standard_error=error)


def _portion(study: Study, number: int) -> xr.Dataset:
    seed = PORTIONS * study.seed + number
    settings = {"memory_length": MEMORY_LENGTH, "n": MEMORIES, "per_kind": PER_KIND, "portion_seed": seed}

    def make() -> xr.Dataset:
        return comprehension(model(), WORDS, MEMORY_LENGTH, MEMORIES, seed, per_kind=PER_KIND)

    return study.kept(f"comprehension_{number}", make, None, **settings)


@styled
def draw(found: xr.Dataset) -> Figure:
    """The accuracy by kind of question, with standard errors."""
    figure, axis = plt.subplots(figsize=(5.8, 3.2))
    meanfield.plot(found, ax=axis)
    axis.set_title(f"{model_title(found)}, {found.sizes['agent']} random memories")
    if legend := axis.get_legend():
        names = [text.get_text() for text in legend.get_texts()]
        figure.legend(legend.legend_handles, names, loc="outside upper center", ncols=4)
        legend.remove()
    return figure


def questions(study: Study) -> xr.Dataset:
    """The templates of the questions, by kind."""
    texts = [re.sub(r"\$(\w+)", r"{\1}", kind.text) for kind in KINDS]
    columns = {
        "question": ("kind", texts, "the question"),
        "group": ("kind", [kind.category for kind in KINDS], "group"),
    }
    return labelled(columns, coords={"kind": [kind.name for kind in KINDS]})


def table(found: xr.Dataset) -> pd.DataFrame:
    """A row for each kind of question, within its group."""
    return found.to_dataframe().reset_index().set_index(["group", "kind"])


ITEMS = [
    Item(
        "004",
        "S1",
        "Questions about the prompt",
        "The share of correct answers by kind of question, nearly always above 0.8, for four models and 100 random "
        "memories each.",
        numbers,
        draw,
        f"SmolLM2-135M, which runs here, instead of the paper's four models. {PORTIONS * MEMORIES} memories of up to "
        f"{MEMORY_LENGTH} interactions (the paper: 100 of up to 5), and for each one random question of each kind "
        "(the paper: all), since an answer takes one to two seconds. This small model answers few of them.",
    ),
    Item(
        "004",
        "Table S2",
        "Questions about the prompt",
        "The templates of the questions, in three groups: rules, time and state.",
        questions,
        table,
        "As policy_extraction.checks.comprehension asks them: players have names.",
    ),
]
