"""The questionnaire of [003] Appendix E: a form of an agent's decisions and texts, for a person to judge.

A form is plain JSON. Each question has up to 20 items, drawn from the records of the agent, and every item a score.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from meanfield import InputError
from meanfield.toolbox import LARGEST_SEED, whole_number
from theory.norms import AGENTS
from validation.norms.questionnaire._records import Operation, Record, agent_operations

FORMAT = 1
QUESTIONNAIRE = tomllib.loads(
    files("validation.norms.questionnaire").joinpath("questionnaire.toml").read_text(encoding="utf-8")
)
TASKS: dict[str, dict[str, Any]] = {task["name"]: task for task in QUESTIONNAIRE["task"]}

Form = dict[str, Any]


def evaluation_form(
    records: str | os.PathLike[str] | Iterable[Record],
    agent: str,
    *,
    per_question: int = 20,
    seed: int,
    description: str | None = None,
) -> Form:
    """Make a form in which a person judges the operations of one agent, as plain JSON.

    Parameters
    ----------
    records
        A file of JSON lines, or dicts: each with `operation`, `agent`, `inputs` (or `prompt`) and `output` (or
        `answer`); a line of the log of `simulate_society` has such dicts under `exchanges`. Other lines, other agents,
        refused tries (`problem`) and an unfinished last line, left by a killed run, are passed over. Each norm of a
        list is a record of its own. An `identify` is classed by its `source`, 'chat' or 'thought', or by the preceding
        question whether there is a norm.
    agent
        Name of the agent.
    per_question
        Most items for each question, ≥ 1; 20 in [003].
    seed
        Seed of the draw, 0 to 2^63 - 1.
    description
        Description of the agent for the person; by default that of `theory.norms.AGENTS`.

    Returns
    -------
    {"norm_evaluation": 1, agent, description, instructions, scale, tasks}: eight tasks with name, module, about and
    questions; each question has a text and items {input, output, score}, with the score None for the person to fill in.
    A question without records has no items: only entrepreneurs create norms.

    Raises
    ------
    InputError
        If the records can't be read, or none is the agent's.

    See Also
    --------
    read_evaluation : reads it when it is filled in

    Examples
    --------
    >>> records = [{"operation": "decide_to_talk", "agent": "Sam Moore", "inputs": "loud guests", "output": "yes"}]
    >>> form = validation.norms.evaluation_form(records, "Sam Moore", seed=1)
    >>> question = form["tasks"][1]["questions"][1]
    >>> print(question["text"].partition("?")[0])
    Is it right to talk, or not to talk, to whom it finds in conflict with its norms
    >>> question["items"]
    [{'input': 'loud guests', 'output': 'yes', 'score': None}]
    """
    per_question = whole_number("per_question", per_question, 1)
    rng = np.random.default_rng(whole_number("seed", seed, 0, LARGEST_SEED))
    known = agent_operations(records, agent)
    if not known:
        raise InputError(f"agent = {agent!r}: expected one whose operations are among the records")
    described = {one.name: one.description for one in AGENTS}.get(agent, "")
    return {
        "norm_evaluation": FORMAT,
        "agent": agent,
        "description": described if description is None else description,
        "instructions": QUESTIONNAIRE["instructions"],
        "scale": QUESTIONNAIRE["scale"],
        "tasks": [
            {
                **{key: task[key] for key in ("name", "module", "about")},
                "questions": [
                    {"text": question["text"], "items": _drawn(known, question["operations"], per_question, rng)}
                    for question in task["question"]
                ],
            }
            for task in TASKS.values()
        ],
    }


def _drawn(
    known: Sequence[Operation], operations: Sequence[str], number: int, rng: np.random.Generator
) -> list[dict[str, Any]]:
    fitting = [one for one in known if one.name in operations]
    chosen = np.sort(rng.choice(len(fitting), min(number, len(fitting)), replace=False)) if fitting else []
    return [{"input": fitting[k].given, "output": fitting[k].answer, "score": None} for k in chosen]
