"""The questionnaire of [003] Appendix E: its tasks with their modules, and how many questions each has."""

from __future__ import annotations

from validation.norms import evaluation_form

ANYTHING = {"operation": "act", "agent": "anybody", "inputs": "", "output": ""}
EMPTY_FORM = evaluation_form([ANYTHING], "anybody", seed=0)
MODULES: dict[str, str] = {task["name"]: task["module"] for task in EMPTY_FORM["tasks"]}
QUESTIONS: dict[str, int] = {task["name"]: len(task["questions"]) for task in EMPTY_FORM["tasks"]}
