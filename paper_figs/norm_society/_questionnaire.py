"""The questionnaire of [003] Appendix E: forms of an agent's decisions and texts for a person to judge, and scores."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from typing import Any

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import LARGEST_SEED, existing_file, labelled, one_or_several, shown, stamp, whole_number
from theory.norms import AGENTS

BEST = 7
QUESTIONNAIRE = tomllib.loads(
    files("paper_figs.norm_society").joinpath("questionnaire.toml").read_text(encoding="utf-8")
)
TASKS: dict[str, dict[str, Any]] = {task["name"]: task for task in QUESTIONNAIRE["task"]}

Record = Mapping[str, Any]
Form = dict[str, Any]


def evaluation_form(
    records: str | os.PathLike[str] | Iterable[Record], agent: str, *, per_question: int = 20, seed: int
) -> Form:
    """Make a form in which a person judges the operations of one agent, as plain JSON.

    Parameters
    ----------
    records
        The log of a `simulate_society` with a language model, or dicts with `operation`, `agent`, `prompt`, what the
        agent was asked, and `answer`, as its lines have under `exchanges`. Other agents and refused tries (`problem`)
        are passed over. Each norm of a list that was created is a record of its own. An `identify` is classed by its
        `source`, 'chat' or 'thought', or by the preceding question whether there is a norm.
    agent
        Name of the agent.
    per_question, seed
        Most items for each question, 20 in [003], and the seed of their draw.

    Returns
    -------
    {agent, description, instructions, scale, tasks}: eight tasks with name, module, about and questions; each question
    has a text and items {input, output, score}, with the score None for the person to fill in. A question without
    records has no items: only entrepreneurs create norms.

    Examples
    --------
    >>> from paper_figs.norm_society import evaluation_form, questionnaire_scores
    >>> records = [{"operation": "decide_to_talk", "agent": "Sam Moore", "prompt": "loud guests", "answer": "yes"}]
    >>> form = evaluation_form(records, "Sam Moore", seed=1)
    >>> form["tasks"][1]["questions"][1]["items"]
    [{'input': 'loud guests', 'output': 'yes', 'score': None}]
    """
    per_question = whole_number("per_question", per_question, 1)
    rng = np.random.default_rng(whole_number("seed", seed, 0, LARGEST_SEED))
    known = list(_operations(records, agent))
    if not known:
        raise InputError(f"agent = {agent!r}: expected one whose operations are among the records")

    def drawn(question: Mapping[str, Any]) -> dict[str, Any]:
        items = [item for operation, item in known if operation in question["operations"]]
        chosen = rng.choice(len(items), min(per_question, len(items)), replace=False) if items else []
        return {"text": question["text"], "items": [items[k] | {"score": None} for k in np.sort(chosen).astype(int)]}

    about = {"agent": agent, "description": {one.name: one.description for one in AGENTS}.get(agent, "")}
    about |= {key: QUESTIONNAIRE[key] for key in ("instructions", "scale")}
    parts = ("name", "module", "about")
    tasks = [
        {key: task[key] for key in parts} | {"questions": [*map(drawn, task["question"])]} for task in TASKS.values()
    ]
    return about | {"tasks": tasks}


def _operations(records: str | os.PathLike[str] | Iterable[Record], agent: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The operations of one agent in order, with input and output; 'identify/chat' and 'identify/thought' apart."""
    source = ""
    for number, record in enumerate(_of_log(records) if isinstance(records, (str, os.PathLike)) else records):
        if not isinstance(record, Mapping) or not {"operation", "agent", "prompt", "answer"} <= set(record):
            raise InputError(f"records[{number}] = {shown(record)}: expected operation, agent, prompt and answer")
        if record["agent"] != agent or record.get("problem"):
            continue
        name, answers = record["operation"], [record["answer"]]
        if name in ("identify_chat", "identify_thought"):
            source = name.removeprefix("identify_")
        elif name == "identify":
            name = f"identify/{record.get('source', source)}"
        elif name == "create":  # a list, or a text that begins with one; many models explain it
            listed = record["answer"]
            answers = json.JSONDecoder().raw_decode(listed.lstrip())[0] if isinstance(listed, str) else listed
        yield from ((name, {"input": record["prompt"], "output": answer}) for answer in answers)


def _of_log(path: str | os.PathLike[str]) -> Iterator[Record]:
    """The exchanges of all events of a log."""
    for number, line in enumerate(existing_file(path, "records").read_bytes().splitlines(), 1):
        try:
            yield from json.loads(line).get("exchanges", ())
        except (ValueError, TypeError, AttributeError):
            raise InputError(f"records = {path}: line {number} is no event of a society's log") from None


def questionnaire_scores(forms: Iterable[Form]) -> xr.Dataset:
    """The scores, whole numbers from 1 to 7, of filled forms of `evaluation_form` by task, as in [003] Fig. 4.

    The score of a question in a form is the mean of its items, the score of a task the mean over all questions and
    forms with items, and the overall score the mean over all tasks. So a task counts by its number of questions, and
    the creation of norms by the forms of entrepreneurs only. The standard error is for a ratio of sums over forms,
    which are independent (Cochran 1977, Sampling Techniques, Section 6.4).

    Returns
    -------
    Dataset over `task` (coordinate `module`) with `score`, `standard_error`, `forms`, the number with items of the
    task, and `items`, the number of scores; and `overall`, `overall_standard_error`. NaN without items; errors also
    with items in fewer than two forms.

    Examples
    --------
    >>> from paper_figs.norm_society import evaluation_form, questionnaire_scores
    >>> records = [{"operation": "decide_to_talk", "agent": "Sam Moore", "prompt": "loud guests", "answer": "yes"}]
    >>> forms = [evaluation_form(records, "Sam Moore", seed=1) for person in range(2)]
    >>> for form, score in zip(forms, (6, 7)):
    ...     form["tasks"][1]["questions"][1]["items"][0]["score"] = score
    >>> scores = questionnaire_scores(forms).sel(task="Sender")
    >>> scores["score"].item(), scores["standard_error"].item()
    (6.5, 0.5)
    """
    each = [_scores_of(form, f"forms[{k}]") for k, form in enumerate(one_or_several(forms))]
    if not each:
        raise InputError("forms is empty: expected one or more")
    # (form, task): sum of the means of questions, number of questions with items, number of items
    sums = [[(sum(map(np.mean, task)), len(task), sum(map(len, task))) for task in one] for one in each]
    total, questions, items = np.array(sums, dtype=float).transpose(2, 0, 1)
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
    modules = ("task", [task["module"] for task in TASKS.values()])
    return stamp(labelled(columns, {"task": list(TASKS), "module": modules}), "norm_questionnaire", forms=len(each))


def _scores_of(form: Any, name: str) -> list[list[list[int]]]:
    """The scores of each task and question with items, in the order of the questionnaire."""
    tasks = form.get("tasks", ()) if isinstance(form, Mapping) else ()
    if [(task["name"], len(task["questions"])) for task in tasks] != [
        (k, len(t["question"])) for k, t in TASKS.items()
    ]:
        raise InputError(f"{name}: expected a form that evaluation_form made, with all its tasks and questions")
    found = [[[item["score"] for item in one["items"]] for one in task["questions"] if one["items"]] for task in tasks]
    for task, questions in zip(TASKS, found, strict=True):
        for score in (score for scores in questions for score in scores):
            whole_number(f"{name}: score of {task}", score, 1, BEST)
    if not any(found):
        raise InputError(f"{name}: no question has items, expected some to be scored")
    return found


def _ratio(total: np.ndarray, number: np.ndarray) -> tuple[float, float]:
    """Σ total / Σ number over forms, and its standard error; NaN without forms, or with one."""
    total, number = total[number > 0], number[number > 0]
    forms = len(total)
    mean = total.sum() / number.sum() if forms else np.nan
    spread = ((total - mean * number) ** 2).sum() * forms / (forms - 1) if forms > 1 else np.nan
    return float(mean), float(np.sqrt(spread) / number.sum()) if forms > 1 else np.nan
