"""What operations of a norm society may answer, since they may be anybody's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from meanfield import InputError
from theory.norms import STANDARDS


def check_answer(operation: str, agent: str, answer: Any) -> None:
    """InputError unless the answer is of the kind that `theory.norms.SocietyOperations` says."""
    right, expected = ANSWERS.get(operation, YES_OR_NO)
    if not right(answer):
        raise InputError(f"{operation} of {agent} answered {answer!r}: expected {expected}")


def _is_created(answer: Any) -> bool:
    return _is_list(answer) and all(
        isinstance(one, Mapping) and {"content", "kind", "utility"} <= set(one) for one in answer
    )


def _is_list(answer: Any) -> bool:
    return isinstance(answer, Sequence) and not isinstance(answer, (str, bytes))


def _is_information(answer: Any) -> bool:
    return answer is None or all(hasattr(answer, name) for name in ("content", "kind", "utility", "text", "source"))


def _is_plan(answer: Any) -> bool:
    return isinstance(getattr(answer, "text", None), str) and isinstance(
        getattr(answer, "follows", None), (set, frozenset)
    )


def _is_action(answer: Any) -> bool:
    text, shows, normative = (getattr(answer, name, None) for name in ("text", "shows", "normative"))
    return isinstance(text, str) and isinstance(shows, str) and shows in STANDARDS and _is_bool(normative)


def _is_themes(answer: Any) -> bool:
    pairs = _is_list(answer) and all(_is_list(one) and len(one) == 2 for one in answer)
    return pairs and all(isinstance(theme, str) and _is_list(contents) for theme, contents in answer)


def _is_abstract(answer: Any) -> bool:
    return _is_list(answer) and len(answer) == 3 and isinstance(answer[0], str) and _is_list(answer[2])


def _is_bool(answer: Any) -> bool:
    return isinstance(answer, (bool, np.bool_))


YES_OR_NO: tuple[Callable[[Any], bool], str] = (_is_bool, "True or False")
ANSWERS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "create": (_is_created, "a list of norms, each with content, kind and utility"),
    "talk": (lambda answer: isinstance(answer, str), "text"),
    "think": (lambda answer: answer is None or isinstance(answer, str), "text or None"),
    "identify": (_is_information, "an Information or None"),
    "plan": (_is_plan, "a Plan, with a set of what it follows"),
    "act": (_is_action, f"an Action that shows one of {', '.join(STANDARDS)}, normative or not"),
    "classify": (_is_themes, "a list of themes, each with a list of contents"),
    "abstract": (_is_abstract, "content, kind and a list of weights"),
}
