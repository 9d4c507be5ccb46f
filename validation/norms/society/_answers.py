"""Answers that operations of a norm society may give, and their form in a log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from meanfield import InputError
from theory.norms import STANDARDS, Action, Information, Plan
from validation.norms.society._json import plain

RECORDS = {"identify": Information, "plan": Plan, "act": Action}


def check_answer(operation: str, agent: str, answer: Any) -> None:
    """InputError unless the answer has the kind that `theory.norms.SocietyOperations` says."""
    right, expected = ANSWERS.get(operation, YES_OR_NO)
    if not right(answer):
        raise InputError(f"{operation} of {agent} answered {answer!r}: expected {expected}")


def answer_to_json(operation: str, answer: Any) -> Any:
    """An answer as JSON; of a record, which may be of any class, the fields that the contract names."""
    if operation in RECORDS and answer is not None:
        answer = {one.name: getattr(answer, one.name) for one in fields(RECORDS[operation])}
    return plain(answer)


def answer_from_json(operation: str, answer: Any) -> Any:
    """The answer again; TypeError or LookupError where it can't be one."""
    if operation == "plan":
        answer = {**answer, "follows": frozenset(answer["follows"])}
    return RECORDS[operation](**answer) if operation in RECORDS and answer is not None else answer


def _is_list(answer: Any, of: Callable[[Any], bool] = lambda _: True) -> bool:
    return isinstance(answer, Sequence) and not isinstance(answer, (str, bytes)) and all(map(of, answer))


def _is_norm(answer: Any) -> bool:
    return isinstance(answer, Mapping) and {"content", "kind", "utility"} <= set(answer)


def _is_theme(answer: Any) -> bool:
    return _is_list(answer) and len(answer) == 2 and isinstance(answer[0], str) and _is_list(answer[1])


def _is_abstract(answer: Any) -> bool:
    return _is_list(answer) and len(answer) == 3 and isinstance(answer[0], str) and _is_list(answer[2])


def _has(answer: Any, **parts: Any) -> bool:
    return all(isinstance(getattr(answer, name, None), kind) for name, kind in parts.items())


BOOL = (bool, np.bool_)
YES_OR_NO: tuple[Callable[[Any], bool], str] = (lambda answer: isinstance(answer, BOOL), "True or False")
ANSWERS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "create": (lambda answer: _is_list(answer, _is_norm), "a list of norms, each with content, kind and utility"),
    "talk": (lambda answer: isinstance(answer, str), "text"),
    "think": (lambda answer: answer is None or isinstance(answer, str), "text or None"),
    "identify": (
        lambda answer: answer is None or all(hasattr(answer, one.name) for one in fields(Information)),
        "an Information or None",
    ),
    "plan": (lambda answer: _has(answer, text=str, follows=(set, frozenset)), "a Plan, with a set of what it follows"),
    "act": (
        lambda answer: _has(answer, text=str, shows=str, normative=BOOL) and answer.shows in STANDARDS,
        f"an Action that shows one of {', '.join(STANDARDS)}, normative or not",
    ),
    "classify": (lambda answer: _is_list(answer, _is_theme), "a list of themes, each with a list of contents"),
    "abstract": (_is_abstract, "content, kind and a list of weights"),
}
