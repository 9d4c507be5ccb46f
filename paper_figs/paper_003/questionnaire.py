"""[003] Fig. 4, E1 and E2: the questionnaire, its printed scores, and how much a simulated society gives to judge."""

from __future__ import annotations

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.toolbox import labelled
from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import styled
from paper_figs.paper_003.society import answers_of, society
from theory.norms import AGENTS

# [003] Appendix E: the module of each task, and the operations that each of its questions is about
TASKS: dict[str, tuple[str, list[tuple[str, ...]]]] = {
    "Creation": ("Creation", [("create",)] * 3),
    "Sender": ("Spreading", [("detect_conflict",), ("decide_to_talk",)]),
    "Receiver": ("Spreading", [("identify_chat",), ("identify/chat",)]),
    "Observation": ("Spreading", [("identify_thought",), ("identify/thought",)]),
    "Immediate Evaluation": (
        "Evaluation",
        [
            *[(step,) for step in ("is_consistent", "is_type_right", "is_unique", "is_conflict_free")],
            ("identify/chat", "identify/thought"),
        ],
    ),
    "Long-term Synthesis": ("Evaluation", [("abstract",)]),
    "Plan": ("Compliance", [("plan",)]),
    "Action": ("Compliance", [("act",)]),
}
MODULES = [module for module, _ in TASKS.values()]

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
    score, error = np.array([PRINTED[task] for task in TASKS]).T
    questions = np.array([len(asked) for _, asked in TASKS.values()])
    forms = np.array([ENTREPRENEURS if task == "Creation" else FORMS for task in TASKS])
    weight = questions * forms / (questions * forms).sum()
    columns = {
        "score": ("task", score, "printed score"),
        "standard_error": ("task", error, "its printed error"),
        "items": ("task", questions * forms * ITEMS_PER_QUESTION, "pairs that were judged, at most"),
        "weight": ("task", weight, "share of the questions in all forms"),
        "overall": ((), weight @ score, "mean of the scores with these weights"),
        "overall_standard_error": ((), np.sqrt(((weight * error) ** 2).sum()), "its error, of independent tasks"),
    }
    return labelled(columns, {"task": list(TASKS), "module": ("task", MODULES)})


@styled
def draw_scores(found: xr.Dataset) -> Figure:
    """The printed scores by task, and their weighted mean."""
    figure, axis = plt.subplots(figsize=(6.4, 3.4))
    rows = np.arange(found.sizes["task"])
    for module, colour in COLOURS.items():
        here = found["module"].values == module
        score, spread = found["score"].values[here], found["standard_error"].values[here]
        axis.errorbar(score, rows[here], xerr=spread, fmt="o", markersize=4, capsize=3, color=colour, label=module)
    mean, error = float(found["overall"]), float(found["overall_standard_error"])
    axis.set_title(f"mean weighted by questions {mean:.2f} ± {error:.2f}, printed {OVERALL[0]} ± {OVERALL[1]}")
    axis.axvline(mean, color="0.5", linestyle="--", label=f"all tasks, {mean:.2f}")
    axis.axvspan(mean - error, mean + error, color="0.5", alpha=0.2, linewidth=0)
    axis.set_yticks(rows, found["task"].values)
    axis.invert_yaxis()
    axis.set(xlim=(1, 7), xlabel="score from 1 to 7, ± standard error")
    axis.legend(loc="upper left")
    return figure


def pairs_to_judge(study: Study) -> xr.Dataset:
    """For each question the pairs of input and output in the forms of all ten agents."""
    done = Counter[tuple[str, str]]()
    for _, answers in answers_of(society(study)):
        source = ""
        for operation, agent, answer in answers:
            source = SOURCES.get(operation, source)
            if operation == "identify":  # two questions: whether there is a norm, and which one
                done[f"identify_{source}", agent] += 1
                done[f"identify/{source}", agent] += answer is not None
            else:
                done[operation, agent] += len(answer) if operation == "create" else 1
    questions = [(task, module, of) for task, (module, asked) in TASKS.items() for of in asked]
    pairs = [
        [min(sum(done[one, agent.name] for one in of), ITEMS_PER_QUESTION) for agent in AGENTS] for *_, of in questions
    ]
    columns = {"pairs": (("question", "agent"), pairs, "pairs of input and output in the form of an agent")}
    tasks, modules, _ = zip(*questions, strict=True)
    place = [1 + tasks[:k].count(task) for k, task in enumerate(tasks)]
    names = {
        "agent": [agent.name for agent in AGENTS],
        "task": ("question", list(tasks)),
        "number": ("question", place),
    }
    return labelled(columns, coords={**names, "module": ("question", list(modules))})


@styled
def draw_pairs(found: xr.Dataset) -> Figure:
    """A bar for each question, coloured by module, up to twenty pairs for each agent."""
    figure, axis = plt.subplots(figsize=(6.4, 4.4))
    rows = np.arange(found.sizes["question"])
    pairs = found["pairs"].sum("agent").values
    for module in COLOURS:
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
