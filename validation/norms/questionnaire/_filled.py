"""Forms that a person filled in, read and checked as a whole."""

from __future__ import annotations

import json
import os
from typing import Any

from meanfield import InputError
from meanfield.toolbox import existing_file
from validation.norms.questionnaire._form import FORMAT, TASKS, Form

BEST = 7


def read_evaluation(path: str | os.PathLike[str]) -> Form:
    """Read a form that was filled in, and check it as a whole.

    Returns
    -------
    The form, as `evaluation_form` describes it, with a score for each item.

    Raises
    ------
    InputError
        If the file can't be read, is no form, lacks a task or a question, or has a score that is missing or no whole
        number from 1 to 7. The message names the first error.

    See Also
    --------
    questionnaire_scores : the scores

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> records = [{"operation": "decide_to_talk", "agent": "Sam Moore", "inputs": "loud guests", "output": "yes"}]
    >>> form = json.dumps(validation.norms.evaluation_form(records, "Sam Moore", seed=1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "sam.json")
    ...     _ = path.write_text(form.replace("null", "6"))  # a person gives 6 of 7
    ...     validation.norms.read_evaluation(path)["tasks"][1]["questions"][1]["items"]
    [{'input': 'loud guests', 'output': 'yes', 'score': 6}]
    """
    try:
        form = json.loads(existing_file(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"path = {path}: can't be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"path = {path}: expected JSON, and it can't be read ({error})") from None
    filled_scores(form, str(path))
    return form


def filled_scores(form: Any, name: str) -> dict[str, list[list[int]]]:
    """{task: scores of each question} of a complete form; InputError for anything else."""
    if not isinstance(form, dict) or form.get("norm_evaluation") != FORMAT or not isinstance(form.get("tasks"), list):
        raise InputError(f"{name}: expected a form that evaluation_form made")
    named = [task.get("name") if isinstance(task, dict) else None for task in form["tasks"]]
    for task in TASKS:
        if named.count(task) != 1:
            raise InputError(f"{name}: task {task!r} is there {named.count(task)} times, expected it once")
    for one in named:
        if not isinstance(one, str) or one not in TASKS:
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
