"""The questionnaire of [003] Appendix E: a form of what an agent decided and wrote, filled by a person, and its scores.

A form is plain JSON. Each question has up to 20 items, drawn from the records of the agent, and every item a score.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from meanfield import InputError, stamp
from theory.norms import AGENTS
from validation._arguments import LARGEST_SEED, integer

FORMAT = 1
BEST = 7
QUESTIONNAIRE = tomllib.loads(files("validation").joinpath("questionnaire.toml").read_text(encoding="utf-8"))
TASKS: dict[str, dict[str, Any]] = {task["name"]: task for task in QUESTIONNAIRE["task"]}

Record = Mapping[str, Any]
Form = dict[str, Any]


def evaluation_form(
    records: str | os.PathLike[str] | Iterable[Record],
    agent: str,
    *,
    per_question: int = 20,
    seed: int,
    description: str | None = None,
) -> Form:
    """A form in which a person judges the operations of one agent, as plain JSON.

    Parameters
    ----------
    records
        A file of JSON lines, or dicts: each with `operation`, `agent`, `inputs` (or `prompt`) and `output` (or
        `answer`); a line of the log of `simulate_society` has such dicts under `exchanges`. Other lines, other agents
        and tries that were refused (`problem`) are passed over. Of a list of norms each is a record of its own. An
        `identify` is told by its `source`, 'chat' or 'thought', or by the question before it whether there is a norm.
    agent
        Whose operations, by name.
    per_question
        Items for each question, at most; as many as there are where there are fewer. ≥ 1; 20 in [003].
    seed
        Of the draw, 0 to 2^63 - 1.
    description
        What the person is told of the agent; by default that of `theory.norms.AGENTS`.

    Returns
    -------
    {"norm_evaluation": 1, agent, description, instructions, scale, tasks}: eight tasks with name, module, about and
    questions, of which each has a text and items {input, output, score}; every score is None, for the person to fill
    in. A question without records has no items: only entrepreneurs create norms.

    Raises
    ------
    InputError
        If the records can't be read, or none is the agent's.
    """
    per_question = integer("per_question", per_question, 1)
    rng = np.random.default_rng(integer("seed", seed, 0, LARGEST_SEED))
    known = list(_operations(_lines(records), agent))
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


def read_evaluation(path: str | os.PathLike[str]) -> Form:
    """A form that was filled in, checked as a whole.

    Raises
    ------
    InputError
        If the file can't be read, or is no form, lacks a task or a question, or has a score that is missing or no whole
        number from 1 to 7. The message names the first thing that is wrong.
    """
    try:
        form = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"path = {path}: can't be read ({error.strerror})") from None
    except ValueError as error:
        raise InputError(f"path = {path}: expected JSON, and it can't be read ({error})") from None
    _scores(form, str(path))
    return form


def questionnaire_scores(forms: Iterable[Form]) -> xr.Dataset:
    """The scores of filled forms by task, as [003] Fig. 4 has them.

    Of every question of a form the mean of its items is taken. The score of a task is the mean of these over all
    questions and forms that have items, and the overall score the mean over all tasks. So a task counts by its number
    of questions, and the creation of norms by the forms of entrepreneurs only: with these weights the scores that the
    paper has for the tasks give its 5.63. Forms are independent of each other and the items of a form are not: the
    standard error is that of a ratio of sums over forms (Cochran 1977, Sampling Techniques, Section 6.4).

    Parameters
    ----------
    forms
        As `read_evaluation` returns them, one or more.

    Returns
    -------
    Dataset over `task` (coordinate `module`) with `score`, `standard_error`, `forms`, how many have items of the task,
    and `items`, how many scores; and `overall`, `overall_standard_error`. NaN where there are no items, and errors
    also where fewer than two forms have any.

    Raises
    ------
    InputError
        If there are no forms, or one is not filled in as `read_evaluation` expects it.
    """
    each = [_scores(form, f"forms[{k}]") for k, form in enumerate(forms)]
    if not each:
        raise InputError("forms is empty: expected one or more")
    # (form, task): sum of the means of questions, number of questions with items, number of items
    total, questions, items = np.array(
        [
            [
                (sum(map(np.mean, filled)), len(filled), sum(map(len, filled)))
                for filled in ([scores for scores in one[task] if scores] for task in TASKS)
            ]
            for one in each
        ],
        dtype=float,
    ).transpose(2, 0, 1)
    score, error = np.array([_ratio(total[:, k], questions[:, k]) for k in range(len(TASKS))]).T
    overall, overall_error = _ratio(total.sum(1), questions.sum(1))
    columns = {
        "score": ("task", score, "mean score"),
        "standard_error": ("task", error, "standard error of the mean score, over forms"),
        "forms": ("task", (questions > 0).sum(0), "forms with items"),
        "items": ("task", items.sum(0).astype(int), "scores"),
        "overall": ((), overall, "mean score of all tasks"),
        "overall_standard_error": ((), overall_error, "standard error of that mean, over forms"),
    }
    result = xr.Dataset(
        {name: (dims, values, {"long_name": text, "units": "1"}) for name, (dims, values, text) in columns.items()},
        coords={"task": list(TASKS), "module": ("task", [task["module"] for task in TASKS.values()])},
    )
    return stamp(result, "norm_questionnaire", forms=len(each))


def _lines(records: str | os.PathLike[str] | Iterable[Record]) -> Iterator[Record]:
    if not isinstance(records, (str, os.PathLike)):
        yield from records
        return
    try:
        lines = Path(records).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"records = {records}: can't be read ({error.strerror})") from None
    for number, line in enumerate(lines, 1):
        try:
            yield json.loads(line)
        except ValueError:
            raise InputError(f"records = {records}: line {number} is not JSON") from None


def _operations(lines: Iterable[Record], agent: str) -> Iterator[tuple[str, Any, Any]]:
    """(operation, input, output) of the agent."""
    source = ""
    for line in lines:
        for record in line.get("exchanges", [line]):
            if record.get("agent") != agent or "operation" not in record or record.get("problem"):
                continue
            operation = str(record["operation"])
            given, answer = (_either(record, names) for names in (("inputs", "prompt"), ("output", "answer")))
            if operation in ("identify_chat", "identify_thought"):
                source = operation.removeprefix("identify_")
            if operation == "identify":
                operation = f"identify/{record.get('source', source)}"
            yield from ((operation, given, one) for one in (_norms(answer) if operation == "create" else [answer]))


def _either(record: Record, names: tuple[str, str]) -> Any:
    for name in names:
        if name in record:
            return record[name]
    raise InputError(f"record of {record['operation']} by {record['agent']} has neither {names[0]} nor {names[1]}")


def _norms(answer: Any) -> list[Any]:
    """The norms of a list, or of a text that is one."""
    try:
        listed = json.loads(answer) if isinstance(answer, str) else answer
    except ValueError:
        return [answer]
    return listed if isinstance(listed, list) else [answer]


def _drawn(
    known: Sequence[tuple[str, Any, Any]], operations: Sequence[str], number: int, rng: np.random.Generator
) -> list[dict[str, Any]]:
    fitting = [(given, answer) for operation, given, answer in known if operation in operations]
    chosen = np.sort(rng.choice(len(fitting), min(number, len(fitting)), replace=False)) if fitting else []
    return [{"input": fitting[k][0], "output": fitting[k][1], "score": None} for k in chosen]


def _scores(form: Any, name: str) -> dict[str, list[list[int]]]:
    """{task: for each question its scores} of a form that is complete; InputError for anything else."""
    if not isinstance(form, dict) or form.get("norm_evaluation") != FORMAT or not isinstance(form.get("tasks"), list):
        raise InputError(f"{name}: expected a form that evaluation_form made")
    named = [task.get("name") if isinstance(task, dict) else task for task in form["tasks"]]
    for task in TASKS:
        if named.count(task) != 1:
            raise InputError(f"{name}: task {task!r} is there {named.count(task)} times, expected it once")
    for one in named:
        if one not in TASKS:
            raise InputError(f"{name}: there is a task {one!r}, expected {', '.join(TASKS)}")
    found = {task["name"]: _task_scores(task, name) for task in form["tasks"]}
    if not any(scores for questions in found.values() for scores in questions):
        raise InputError(f"{name}: no question has items, expected some to be scored")
    return found


def _task_scores(task: dict[str, Any], name: str) -> list[list[int]]:
    expected, questions = len(TASKS[task["name"]]["question"]), task.get("questions")
    if not isinstance(questions, list) or len(questions) != expected:
        raise InputError(f"{name}: task {task['name']!r} lacks questions, expected {expected}")
    scores = []
    for number, question in enumerate(questions, 1):
        where = f"{name}: task {task['name']!r}, question {number}"
        items = question.get("items") if isinstance(question, dict) else None
        if not isinstance(items, list):
            raise InputError(f"{where} has no list of items")
        scores.append([_score(item, f"{where}, item {k}") for k, item in enumerate(items, 1)])
    return scores


def _score(item: Any, where: str) -> int:
    score = item.get("score") if isinstance(item, dict) else None
    if score is None:
        raise InputError(f"{where} has no score, expected a whole number from 1 to {BEST}")
    if isinstance(score, bool) or not isinstance(score, int) or not 1 <= score <= BEST:
        raise InputError(f"{where} has the score {score!r}, expected a whole number from 1 to {BEST}")
    return score


def _ratio(total: np.ndarray, number: np.ndarray) -> tuple[float, float]:
    """Σ total / Σ number over forms, and its standard error."""
    among = number > 0
    total, number = total[among], number[among]
    forms = len(total)
    if not forms:
        return np.nan, np.nan
    mean = total.sum() / number.sum()
    if forms < 2:
        return float(mean), np.nan
    spread = ((total - mean * number) ** 2).sum() * forms / (forms - 1)
    return float(mean), float(np.sqrt(spread) / number.sum())
