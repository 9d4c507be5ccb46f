"""[003] Figs. 3, 4, C1 to C3, E1 and E2: an agent that comes to a norm in a simulated society, and how it is judged."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.toolbox import labelled
from paper_figs._item import item
from paper_figs._study import Study
from paper_figs.norm_society import TableOperations, simulate_society
from paper_figs.paper_003.emergence import NORMS
from theory.norms import AGENTS, BEHAVIOURS, NormRates

DAYS = 2
ENCOUNTERS = round(DAYS * len(AGENTS) * len(BEHAVIOURS) * NormRates().encounters_per_day)

# The stages of a life with a norm, in the order in which [003] tells them, and their colours
STAGES = {
    "acts against it": "#d55e00",
    "is told of it": "#009e73",
    "finds it in a talk or thought": "#56b4e9",
    "accepts it": "#0072b2",
    "plans by it": "black",
    "acts by it": "#e69f00",
    "reminds others of it": "#cc79a7",
    "makes it part of a general norm": "0.4",
}
AGAINST_IT, TOLD, FINDS, ACCEPTS, PLANS, BY_IT, REMINDS, GENERAL = STAGES
OPENING = 0.1  # days, at least, that the left panel shows
NAMED = {TOLD, ACCEPTS, REMINDS}  # stages in which the first name of the other agent stands below its stroke
ROOM = 0.12  # of a panel's width, for a name

EACH_STEP = [(step,) for step in ("is_consistent", "is_type_right", "is_unique", "is_conflict_free")]
# By task: its module and the operations of each of its questions, [003] Appendix E; score and error, [003] Fig. 4
TASKS: dict[str, tuple[str, list[tuple[str, ...]], float, float]] = {
    "Creation": ("Creation", [("create",)] * 3, 6.44, 0.11),
    "Sender": ("Spreading", [("detect_conflict",), ("decide_to_talk",)], 5.86, 0.05),
    "Receiver": ("Spreading", [("identify_chat",), ("identify/chat",)], 5.77, 0.08),
    "Observation": ("Spreading", [("identify_thought",), ("identify/thought",)], 5.13, 0.05),
    "Immediate Evaluation": ("Evaluation", [*EACH_STEP, ("identify/chat", "identify/thought")], 5.14, 0.07),
    "Long-term Synthesis": ("Evaluation", [("abstract",)], 5.97, 0.07),
    "Plan": ("Compliance", [("plan",)], 6.43, 0.14),
    "Action": ("Compliance", [("act",)], 6.40, 0.04),
}
OVERALL = 5.63, 0.03  # [003] Fig. 4
ITEMS_PER_QUESTION, FORMS, ENTREPRENEURS = 20, 30, 9  # [003] Section 3.3: 20 pairs, three runs of ten agents

SOURCES = {"talk": "chat", "think": "thought"}  # of a norm, by the operation that wrote the text
MODULES = {"Creation": "#0072b2", "Spreading": "#e69f00", "Evaluation": "#009e73", "Compliance": "#cc79a7"}

Answer = tuple[str, str, Any]  # operation, name of the agent, answer


class Moment(NamedTuple):
    """Something of STAGES in an agent's life, and the other agent in it, '' if there is none."""

    day: float
    what: str
    other: str = ""


def society(study: Study) -> xr.Dataset:
    """Two days of the ten agents: `day` (event) and `answers` (event), JSON of what they decided and said."""

    def played(**options: int) -> xr.Dataset:
        result = simulate_society(TableOperations(), **options)
        return result[["answers"]].assign(day=result["time"]).drop_vars(["what", "time"])

    return study.kept("society", played, encounters=ENCOUNTERS, seed=study.seed)


def answers_of(played: xr.Dataset) -> Iterator[tuple[float, list[Answer]]]:
    """The day of each event, and its answers in order."""
    for day, text in zip(played["day"].values, played["answers"].values, strict=True):
        yield float(day), [(given[0], given[1], given[2] if len(given) > 2 else None) for given in json.loads(text)]


def life(played: xr.Dataset, agent: str, behaviour: str) -> list[Moment]:
    """An agent's steps towards the standard 'for' of a behaviour, and its acts on it, in order of time."""
    moments: list[Moment] = []
    norm = BEHAVIOURS[behaviour].standards["for"]
    for day, answers in answers_of(played):
        given = {operation: (who, answer) for operation, who, answer in answers}
        if given.get("plan", ("",))[0] == agent and norm in given["plan"][1]["follows"]:
            moments.append(Moment(day, PLANS))
        elif given.get("classify", ("",))[0] == agent and any(norm in held for _, held in given["classify"][1]):
            moments.append(Moment(day, GENERAL))
        elif "act" in given and given["act"][1]["text"] in BEHAVIOURS[behaviour].shows.values():
            moments += [Moment(day, *one) for one in _in_encounter(given, agent, norm)]
    return moments


def _in_encounter(given: dict[str, tuple[str, Any]], agent: str, norm: str) -> Iterator[tuple[str, str]]:
    """(what, the other agent) for the agent, who acts or sees another act."""
    actor, act = given["act"]
    observer = given.get("think", given.get("detect_conflict", ("", None)))[0]
    told = given.get("talk", ("", None))[1] == norm
    if actor == agent:
        yield BY_IT if act["shows"] == "for" else AGAINST_IT, observer
        if told:
            yield TOLD, observer
    elif observer == agent and told:
        yield REMINDS, actor
    who, found = given.get("identify", ("", None))
    if who == agent and found and found["content"] == norm:
        other = actor if observer == agent else observer
        yield FINDS, other
        if given.get("is_conflict_free", ("", False))[1]:  # the last step of the check
            yield ACCEPTS, other


def numbers(study: Study, agent: str, behaviour: str) -> xr.Dataset:
    """The moments of the agent's life with the norm, in the society with the seed of the study."""
    moments = zip(*life(society(study), agent, behaviour), strict=True)
    texts = {"day": "day, on average", "what": "what happens", "other": "the other agent"}
    columns = {name: ("moment", list(values), texts[name]) for name, values in zip(texts, moments, strict=True)}
    return labelled(columns, coords={"agent": agent, "behaviour": behaviour})


C1 = """Carlos Gomez and 'no smoking indoors'

Screenshots of Carlos Gomez as he smokes indoors, accepts the norm in a talk, and goes outside to smoke."""
C2 = """Tom Gomez and 'be quiet in public'

Screenshots of Tom Gomez as he listens to loud music, accepts the norm, and takes headphones."""
C3 = """Jennifer Moore and 'be quiet in public'

Screenshots of Jennifer Moore as she sings loudly in the café, accepts the norm, and sings outside."""


@item("003 C3", partial(numbers, agent="Jennifer Moore", behaviour="noise"), C3)
@item("003 C2", partial(numbers, agent="Tom Gomez", behaviour="noise"), C2)
@item("003 C1", partial(numbers, agent="Carlos Gomez", behaviour="smoking"), C1)
@item("003 3", partial(numbers, agent="Carlos Gomez", behaviour="smoking"))
def draw(found: xr.Dataset) -> Figure:
    """A seasoned smoker adopts a norm.

    Carlos Gomez smokes indoors, is told of the norm by Tamara Taylor and twelve minutes later by Abigail Chen, accepts
    it, on day 2 plans and acts by it, and reminds Sam Moore.

    Screenshots can't be had: a society simulated with the package's own operation probabilities, one run, not chosen,
    stands for them. Its day counts encounters on average and has no hours; its agents say a norm, not a sentence.
    """
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.9), sharey=True, width_ratios=[1, 1.4])
    accepted = found["day"].values[found["what"].values == ACCEPTS][:1]
    ends = max([OPENING, *(1.5 * accepted)]), DAYS
    for axis, end, named in zip(axes, ends, (NAMED, {REMINDS}), strict=True):
        _strokes(axis, found.isel(moment=found["day"].values <= end), end, named)
    axes[0].set_yticks(range(len(STAGES)), STAGES)
    axes[0].invert_yaxis()
    axes[0].set_title("the opening")
    axes[1].set_title("two days")
    figure.suptitle(f"{found['agent'].item()} and “{NORMS[found['behaviour'].item()]}” in one simulated society")
    return figure


def _strokes(axis: Axes, part: xr.Dataset, end: float, named: set[str]) -> None:
    for row, (stage, colour) in enumerate(STAGES.items()):
        here = part.isel(moment=part["what"].values == stage)
        axis.eventplot(here["day"].values, lineoffsets=row, linelengths=0.55, colors=colour, linewidths=1)
        free = 0.0
        for day, other in zip(here["day"].values, here["other"].values, strict=True):
            if stage in named and day >= free:
                axis.text(day, row + 0.5, str(other).split()[0], fontsize=7, va="center")
                free = day + ROOM * end
    axis.set_xlim(0, end)
    axis.set_xlabel("day")


def printed(study: Study) -> xr.Dataset:
    """The printed scores, and their mean with the weight of a question in a form."""
    modules, questions, score, error = zip(*TASKS.values(), strict=True)
    asked, error = np.array([len(each) for each in questions]), np.array(error)
    forms = np.array([ENTREPRENEURS if task == "Creation" else FORMS for task in TASKS])
    weight = asked * forms / (asked * forms).sum()
    columns = {
        "score": ("task", list(score), "printed score"),
        "standard_error": ("task", error, "its printed error"),
        "items": ("task", asked * forms * ITEMS_PER_QUESTION, "pairs that were judged, at most"),
        "weight": ("task", weight, "share of the questions in all forms"),
        "overall": ((), weight @ score, "mean of the scores with these weights"),
        "overall_standard_error": ((), np.sqrt(((weight * error) ** 2).sum()), "its error, of independent tasks"),
    }
    return labelled(columns, {"task": list(TASKS), "module": ("task", list(modules))})


@item("003 4", printed)
def draw_scores(found: xr.Dataset) -> Figure:
    """Human evaluation.

    Scores of eight parts of the architecture on a scale from 1 to 7, by 30 people, and an overall score of 5.63 ± 0.03.

    The printed scores: people's judgements can't be computed, and nothing here is measured. The overall score and its
    error follow from them if each of the 17 questions counts alike and only the nine entrepreneurs of the 30 agents
    were judged on creation.
    """
    figure, axis = plt.subplots(figsize=(6.4, 3.4))
    rows = np.arange(found.sizes["task"])
    for module, colour in MODULES.items():
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
    questions = [(task, k + 1, mod, of) for task, (mod, asked, *_) in TASKS.items() for k, of in enumerate(asked)]
    tasks, numbers, modules, operations = zip(*questions, strict=True)
    names = [agent.name for agent in AGENTS]
    pairs = [[min(sum(done[one, name] for one in of), ITEMS_PER_QUESTION) for name in names] for of in operations]
    columns = {"pairs": (("question", "agent"), pairs, "pairs of input and output in the form of an agent")}
    by_question = {"task": tasks, "number": numbers, "module": modules}
    coords = {name: ("question", list(values)) for name, values in by_question.items()}
    return labelled(columns, coords={"agent": names, **coords})


@item("003 E1", pairs_to_judge)
def draw_pairs(found: xr.Dataset) -> Figure:
    """The questionnaire (Figs. E1 and E2).

    The text of a questionnaire of 17 questions in eight tasks, each about 20 random pairs of input and output of an
    agent.

    Its questions as bars: the pairs that two days of a simulated society hold for the forms of its ten agents. Only
    entrepreneurs create norms (three each, five in the paper), and plans and syntheses are rarer than 20 an agent.
    """
    figure, axis = plt.subplots(figsize=(6.4, 4.4))
    rows = np.arange(found.sizes["question"])
    pairs = found["pairs"].sum("agent").values
    for module, colour in MODULES.items():
        here = found["module"].values == module
        axis.barh(rows[here], pairs[here], color=colour, label=module)
    axis.bar_label(axis.barh(rows, pairs, fill=False, lw=0), padding=2, fontsize=7)
    most = ITEMS_PER_QUESTION * found.sizes["agent"]
    axis.axvline(most, color="0.5", ls="--", lw=0.8, label=f"{ITEMS_PER_QUESTION} an agent, as in the paper")
    names = [f"{task}, Q{number}" for task, number in zip(found["task"].values, found["number"].values, strict=True)]
    axis.set_yticks(rows, names)
    axis.invert_yaxis()
    axis.set_xlabel("pairs of input and output, ten agents")
    figure.legend(loc="outside upper center", ncols=5, fontsize=7)
    return figure
