"""[003] Fig. E1 and E2: the questionnaire's questions, and how much a simulated society gives to judge by each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.toolbox import labelled
from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import styled
from paper_figs.paper_003._questions import MODULES, QUESTIONS
from paper_figs.paper_003._society import answers_of, society
from theory.norms import AGENTS
from validation.norms import evaluation_form

PER_QUESTION = 20  # [003] Section 3.3
SOURCES = {"talk": "chat", "think": "thought"}  # of a norm, by the operation that wrote the text
COLOURS = {"Creation": "#0072b2", "Spreading": "#e69f00", "Evaluation": "#009e73", "Compliance": "#cc79a7"}


def numbers(study: Study) -> xr.Dataset:
    """For each question the pairs of input and output in the forms of all ten agents."""
    records = list(_records(society(study)))
    forms = [evaluation_form(records, agent.name, per_question=PER_QUESTION, seed=study.seed) for agent in AGENTS]
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
                yield {"operation": f"identify_{source}", "agent": agent, "inputs": given, "output": found}
            if operation != "identify" or answer is not None:
                yield {"operation": operation, "agent": agent, "inputs": given, "output": answer, "source": source}
            if operation in SOURCES:
                source, given = SOURCES[operation], answer
            elif operation == "act" and answer is not None:
                given = answer["text"]


@styled
def draw(found: xr.Dataset) -> Figure:
    """A bar for each question, coloured by module, up to twenty pairs for each agent."""
    figure, axis = plt.subplots(figsize=(6.4, 4.4))
    rows = np.arange(found.sizes["question"])
    pairs = found["pairs"].sum("agent").values
    for module in dict.fromkeys(MODULES.values()):
        here = found["module"].values == module
        axis.barh(rows[here], pairs[here], color=COLOURS[module], label=module)
    axis.bar_label(axis.barh(rows, pairs, fill=False, lw=0), padding=2, fontsize=7)
    most = PER_QUESTION * found.sizes["agent"]
    axis.axvline(most, color="0.5", ls="--", lw=0.8, label=f"{PER_QUESTION} an agent, as in the paper")
    names = [f"{task}, Q{number}" for task, number in zip(found["task"].values, found["number"].values, strict=True)]
    axis.set_yticks(rows, names)
    axis.invert_yaxis()
    axis.set_xlabel("pairs of input and output, ten agents")
    figure.legend(loc="outside upper center", ncols=5, fontsize=7)
    return figure


ITEMS = [
    Item(
        "003",
        "E1",
        "The questionnaire (Figs. E1 and E2)",
        "The text of a questionnaire of 17 questions in eight tasks, each about 20 random pairs of input and output of "
        "an agent.",
        numbers,
        draw,
        "Its questions as bars: the pairs that two days of a simulated society hold for the forms of its ten agents. "
        "Only entrepreneurs create norms (three each, five in the paper), and plans and syntheses are "
        "rarer than 20 an agent.",
    )
]
