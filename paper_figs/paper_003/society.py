"""[003] Fig. 3 and C1 to C3: how one agent comes to a norm, and what it does about it, in a simulated society."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.toolbox import labelled
from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import styled
from paper_figs.norm_society import TableOperations, simulate_society
from paper_figs.paper_003.emergence import NORMS
from theory.norms import AGENTS, BEHAVIOURS, NormRates

DAYS = 2
ENCOUNTERS = round(DAYS * len(AGENTS) * len(BEHAVIOURS) * NormRates().encounters_per_day)

# The stages of a life with a norm, in the order in which [003] tells them.
STAGES = AGAINST_IT, TOLD, FINDS, ACCEPTS, PLANS, BY_IT, REMINDS, GENERAL = (
    "acts against it",
    "is told of it",
    "finds it in a talk or thought",
    "accepts it",
    "plans by it",
    "acts by it",
    "reminds others of it",
    "makes it part of a general norm",
)

OPENING = 0.1  # days, at least, that the left panel shows
NAMED = {TOLD, ACCEPTS, REMINDS}  # stages in which the first name of the other agent stands below its stroke
ROOM = 0.12  # of a panel's width, for a name
COLOURS = dict(
    zip(STAGES, ("#d55e00", "#009e73", "#56b4e9", "#0072b2", "black", "#e69f00", "#cc79a7", "0.4"), strict=True)
)


Answer = tuple[str, str, Any]  # operation, name of the agent, answer


class Moment(NamedTuple):
    """Something of STAGES in an agent's life, and the other agent in it, '' if there is none."""

    day: float
    what: str
    other: str = ""


def society(study: Study) -> xr.Dataset:
    """Two days of the ten agents: `day` (event) and `answers` (event), JSON of what they decided and said."""

    def played() -> xr.Dataset:
        result = simulate_society(TableOperations(), encounters=ENCOUNTERS, seed=study.seed)
        return result[["answers"]].assign(day=result["time"]).drop_vars(["what", "time"])

    return study.kept("society", played, None, encounters=ENCOUNTERS)


def answers_of(played: xr.Dataset) -> Iterator[tuple[float, list[Answer]]]:
    """The day of each event, and its answers in order."""
    for day, text in zip(played["day"].values, played["answers"].values, strict=True):
        yield (
            float(day),
            [(operation, agent, rest[0] if rest else None) for operation, agent, *rest in json.loads(text)],
        )


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
    day, what, other = zip(*life(society(study), agent, behaviour), strict=True)
    columns = {
        "day": ("moment", list(day), "day, on average"),
        "what": ("moment", list(what), "what happens"),
        "other": ("moment", list(other), "the other agent"),
    }
    return labelled(columns, coords={"agent": agent, "behaviour": behaviour})


@styled
def draw(found: xr.Dataset) -> Figure:
    """A row for each stage, with a stroke for each moment: the opening on the left, both days on the right."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.9), sharey=True, width_ratios=[1, 1.4])
    accepted = found["day"].values[found["what"].values == ACCEPTS][:1]
    ends = max([OPENING, *(1.5 * accepted)]), DAYS
    for axis, end, named in zip(axes, ends, (NAMED, {REMINDS}), strict=True):
        _strokes(axis, found.isel(moment=found["day"].values <= end), end, named)
    axes[0].set_yticks(range(len(STAGES)), STAGES)
    axes[0].invert_yaxis()
    norm = NORMS[str(found["behaviour"].item())]
    axes[0].set_title("the opening")
    axes[1].set_title("two days")
    figure.suptitle(f"{found['agent'].item()} and “{norm}” in one simulated society")
    return figure


def _strokes(axis: Axes, part: xr.Dataset, end: float, named: set[str]) -> None:
    for row, stage in enumerate(STAGES):
        here = part.isel(moment=part["what"].values == stage)
        axis.eventplot(here["day"].values, lineoffsets=row, linelengths=0.55, colors=COLOURS[stage], linewidths=1)
        free = 0.0
        for day, other in zip(here["day"].values, here["other"].values, strict=True):
            if stage in named and day >= free:
                axis.text(day, row + 0.5, str(other).split()[0], fontsize=7, va="center")
                free = day + ROOM * end
    axis.set_xlim(0, end)
    axis.set_xlabel("day")


DIFFERS = (
    "Screenshots can't be had: a society simulated with the package's own operation probabilities, one run, not "
    "chosen, stands for them. Its day counts encounters on average and has no hours; its agents say a norm, not a "
    "sentence."
)


def _item(number: str, title: str, shows: str, agent: str, behaviour: str) -> Item:
    return Item("003", number, title, shows, partial(numbers, agent=agent, behaviour=behaviour), draw, DIFFERS)


ITEMS = [
    _item(
        "3",
        "A seasoned smoker adopts a norm",
        "Carlos Gomez smokes indoors, is told of the norm by Tamara Taylor and twelve minutes later by Abigail Chen, "
        "accepts it, on day 2 plans and acts by it, and reminds Sam Moore.",
        "Carlos Gomez",
        "smoking",
    ),
    _item(
        "C1",
        "Carlos Gomez and 'no smoking indoors'",
        "Screenshots of Carlos Gomez as he smokes indoors, accepts the norm in a talk, and goes outside to smoke.",
        "Carlos Gomez",
        "smoking",
    ),
    _item(
        "C2",
        "Tom Gomez and 'be quiet in public'",
        "Screenshots of Tom Gomez as he listens to loud music, accepts the norm, and takes headphones.",
        "Tom Gomez",
        "noise",
    ),
    _item(
        "C3",
        "Jennifer Moore and 'be quiet in public'",
        "Screenshots of Jennifer Moore as she sings loudly in the café, accepts the norm, and sings outside.",
        "Jennifer Moore",
        "noise",
    ),
]
