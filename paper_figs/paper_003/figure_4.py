"""[003] Fig. 4: what people think of the agents' decisions, and how the overall score follows from the parts."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.toolbox import labelled
from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import styled
from paper_figs.paper_003._questions import MODULES, QUESTIONS

# [003] Fig. 4: score and its error
PRINTED = {
    "Creation": (6.44, 0.11),
    "Sender": (5.86, 0.05),
    "Receiver": (5.77, 0.08),
    "Observation": (5.13, 0.05),
    "Immediate Evaluation": (5.14, 0.07),
    "Long-term Synthesis": (5.97, 0.07),
    "Plan": (6.43, 0.14),
    "Action": (6.40, 0.04),
}
OVERALL = 5.63, 0.03  # [003] Fig. 4
ITEMS_PER_QUESTION, FORMS, ENTREPRENEURS = 20, 30, 9  # [003] Section 3.3: 20 pairs, three runs of ten agents


def numbers(study: Study) -> xr.Dataset:
    """The printed scores, and their mean with the weight of a question in a form."""
    score, error = np.array([PRINTED[task] for task in MODULES]).T
    questions = np.array([QUESTIONS[task] for task in MODULES])
    forms = np.array([ENTREPRENEURS if task == "Creation" else FORMS for task in MODULES])
    weight = questions * forms / (questions * forms).sum()
    columns = {
        "score": ("task", score, "printed score"),
        "standard_error": ("task", error, "its printed error"),
        "items": ("task", questions * forms * ITEMS_PER_QUESTION, "pairs that were judged, at most"),
        "weight": ("task", weight, "share of the questions in all forms"),
        "overall": ((), weight @ score, "mean of the scores with these weights"),
        "overall_standard_error": ((), np.sqrt(((weight * error) ** 2).sum()), "its error, of independent tasks"),
    }
    modules = ("task", list(MODULES.values()))
    return labelled(columns, {"task": list(MODULES), "module": modules}).assign_attrs(kind="norm_questionnaire")


@styled
def draw(found: xr.Dataset) -> Figure:
    """The printed scores by task, and their weighted mean."""
    figure, axis = plt.subplots(figsize=(6.4, 3.4))
    meanfield.plot(found, ax=axis, view="scores")
    mean, error = float(found["overall"]), float(found["overall_standard_error"])
    axis.set_title(f"mean weighted by questions {mean:.2f} ± {error:.2f}, printed {OVERALL[0]} ± {OVERALL[1]}")
    axis.legend(loc="upper left")
    return figure


ITEMS = [
    Item(
        "003",
        "4",
        "Human evaluation",
        "Scores of eight parts of the architecture on a scale from 1 to 7, by 30 people, and an overall score of "
        "5.63 ± 0.03.",
        numbers,
        draw,
        "The printed scores: people's judgements can't be computed, and nothing here is measured. The overall "
        "score and its error follow from them if each of the 17 questions counts alike and only the nine entrepreneurs "
        "of the 30 agents were judged on creation; with equal weights the mean would be 5.89.",
    )
]
