"""One simulated society of [003], every answer of every agent, and the life of one of them in it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from meanfield.toolbox import labelled
from paper_figs._study import Study
from theory.norms import AGENTS, BEHAVIOURS, NormRates
from validation.norms import TableOperations, simulate_society

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

Answer = tuple[str, str, Any]  # operation, name of the agent, answer


class Moment(NamedTuple):
    """Something of STAGES in an agent's life, and the other agent in it, '' if there is none."""

    day: float
    what: str
    other: str = ""


def society(study: Study) -> xr.Dataset:
    """Two days of the ten agents: `day` (event) and `answers` (event), JSON of what they decided and said."""
    return study.kept("society", lambda: _played(study.seed), None, encounters=ENCOUNTERS)


def _played(seed: int) -> xr.Dataset:
    operations = TableOperations()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "society.jsonl"
        result = simulate_society(operations, encounters=ENCOUNTERS, seed=seed, log=log)
        lines = log.read_text(encoding="utf-8").splitlines()[1:]
    answers = np.array([json.dumps(json.loads(line)["answers"]) for line in lines], dtype=object)
    columns = {
        "day": ("event", result["time"].values, "day, on average"),
        "answers": ("event", answers, "operation, agent and answer"),
    }
    return labelled(columns, coords={"event": result["event"].values})


def answers_of(played: xr.Dataset) -> Iterator[tuple[float, list[Answer]]]:
    """The day of each event, and its answers in order."""
    for day, text in zip(played["day"].values, played["answers"].values, strict=True):
        yield (
            float(day),
            [(operation, agent, rest[0] if rest else None) for operation, agent, *rest in json.loads(text)],
        )


def life(played: xr.Dataset, agent: str, behaviour: str) -> list[Moment]:
    """How an agent comes to the standard 'for' of a behaviour, and what it does about it, in order of time."""
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
