"""[003] Fig. 4, E1 and E2: the questionnaire, its printed scores, and how much a simulated society gives to judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.toolbox import labelled
from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import styled
from paper_figs.norm_society import evaluation_form
from paper_figs.norm_society._questionnaire import TASKS
from paper_figs.paper_003.society import answers_of, society
from theory.norms import AGENTS

MODULES: dict[str, str] = {name: task["module"] for name, task in TASKS.items()}
QUESTIONS: dict[str, int] = {name: len(task["question"]) for name, task in TASKS.items()}

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

SOURCES = {"talk": "chat", "think": "thought"}  # of a norm, by the operation that wrote the text
COLOURS = {"Creation": "#0072b2", "Spreading": "#e69f00", "Evaluation": "#009e73", "Compliance": "#cc79a7"}


def printed(study: Study) -> xr.Dataset:
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
def draw_scores(found: xr.Dataset) -> Figure:
    """The printed scores by task, and their weighted mean."""
    figure, axis = plt.subplots(figsize=(6.4, 3.4))
    meanfield.plot(found, ax=axis, view="scores")
    mean, error = float(found["overall"]), float(found["overall_standard_error"])
    axis.set_title(f"mean weighted by questions {mean:.2f} ± {error:.2f}, printed {OVERALL[0]} ± {OVERALL[1]}")
    axis.legend(loc="upper left")
    return figure


def pairs_to_judge(study: Study) -> xr.Dataset:
    """For each question the pairs of input and output in the forms of all ten agents."""
    records = list(_records(society(study)))
    forms = [evaluation_form(records, agent.name, per_question=ITEMS_PER_QUESTION, seed=study.seed) for agent in AGENTS]
    pairs = np.array([[len(q["items"]) for task in form["tasks"] for q in task["questions"]] for form in forms])
    tasks = [task for task, number in QUESTIONS.items() for _ in range(number)]
    place = [k + 1 for number in QUESTIONS.values() for k in range(number)]
    columns = {"pairs": (("question", "agent"), pairs.T, "pairs of input and output in the form of an agent")}
    names = {"agent": [agent.name for agent in AGENTS], "task": ("question", tasks), "number": ("question", place)}
    return labelled(columns, coords={**names, "module": ("question", [MODULES[task] for task in tasks])})


def _records(played: xr.Dataset) -> Iterator[dict[str, Any]]:
    """The answers of a society as records of a questionnaire: what was seen or said, and what the agent answered."""
    for _, answers in answers_of(played):
        source, given = "", ""
        for operation, agent, answer in answers:
            if operation == "identify":
                found = "no" if answer is None else "yes"
                yield {"operation": f"identify_{source}", "agent": agent, "prompt": given, "answer": found}
            if operation != "identify" or answer is not None:
                yield {"operation": operation, "agent": agent, "prompt": given, "answer": answer, "source": source}
            if operation in SOURCES:
                source, given = SOURCES[operation], answer
            elif operation == "act" and answer is not None:
                given = answer["text"]


@styled
def draw_pairs(found: xr.Dataset) -> Figure:
    """A bar for each question, coloured by module, up to twenty pairs for each agent."""
    figure, axis = plt.subplots(figsize=(6.4, 4.4))
    rows = np.arange(found.sizes["question"])
    pairs = found["pairs"].sum("agent").values
    for module in dict.fromkeys(MODULES.values()):
        here = found["module"].values == module
        axis.barh(rows[here], pairs[here], color=COLOURS[module], label=module)
    axis.bar_label(axis.barh(rows, pairs, fill=False, lw=0), padding=2, fontsize=7)
    most = ITEMS_PER_QUESTION * found.sizes["agent"]
    axis.axvline(most, color="0.5", ls="--", lw=0.8, label=f"{ITEMS_PER_QUESTION} an agent, as in the paper")
    names = [f"{task}, Q{number}" for task, number in zip(found["task"].values, found["number"].values, strict=True)]
    axis.set_yticks(rows, names)
    axis.invert_yaxis()
    axis.set_xlabel("pairs of input and output, ten agents")
    figure.legend(loc="outside upper center", ncols=5, fontsize=7)
    return figure


ITEMS = [
    Item(
        "003",
        "4",
        "Human evaluation",
        "Scores of eight parts of the architecture on a scale from 1 to 7, by 30 people, and an overall score of "
        "5.63 ± 0.03.",
        printed,
        draw_scores,
        "The printed scores: people's judgements can't be computed, and nothing here is measured. The overall "
        "score and its error follow from them if each of the 17 questions counts alike and only the nine entrepreneurs "
        "of the 30 agents were judged on creation; with equal weights the mean would be 5.89.",
    ),
    Item(
        "003",
        "E1",
        "The questionnaire (Figs. E1 and E2)",
        "The text of a questionnaire of 17 questions in eight tasks, each about 20 random pairs of input and output of "
        "an agent.",
        pairs_to_judge,
        draw_pairs,
        "Its questions as bars: the pairs that two days of a simulated society hold for the forms of its ten agents. "
        "Only entrepreneurs create norms (three each, five in the paper), and plans and syntheses are "
        "rarer than 20 an agent.",
    ),
]
