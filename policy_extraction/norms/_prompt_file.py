"""Prompts of a norm society in TOML files: those of the package, and those of a user."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import Any

from policy_extraction.norms._prompts import QUESTIONS, ROLES, WRITINGS, NormPrompts, Question, Writing
from policy_extraction.prompts._toml import TEXT, check_layout, packaged_toml, read_toml

PARTS = ("name", "yes", "no", "options", "answer_prefix", "norm", "no_norms", "retry")
LAYOUT: dict[str, Any] = {
    **dict.fromkeys(PARTS, TEXT),
    "role": dict.fromkeys(ROLES, TEXT),
    "question": {name: {"true_if": TEXT, "system": TEXT, "user": TEXT} for name in QUESTIONS},
    "writing": {name: {"system": TEXT, "user": TEXT, "answer_prefix": TEXT} for name in WRITINGS},
}


def load_prompts(path: str | os.PathLike[str]) -> NormPrompts:
    """Read prompts from a TOML file with the layout of `policy_extraction/prompts/templates/norms_003.toml`.

    The file has the texts `name`, `yes`, `no`, `options`, `answer_prefix`, `norm`, `no_norms` and `retry`; the table
    `role` with a text for each type of agent; a table `question.NAME` with `true_if`, `system` and `user` for each
    yes/no operation; and a table `writing.NAME` with `system`, `user` and `answer_prefix` for each operation that
    writes. `NormPrompts` explains them. System and user message together need all slots of the published ones. A plain
    dollar sign is written ``$$``.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    The `prompts` of `NormOperations` and `probe_operations`.

    Raises
    ------
    InputError
        If the file can't be read; if a key is missing, unknown or of a wrong type; or if slots are wrong.

    See Also
    --------
    probe_operations : probabilities with the prompts

    Examples
    --------
    >>> from importlib.resources import files
    >>> from policy_extraction.norms import NORMS_003, load_prompts
    >>> load_prompts(files("policy_extraction.prompts") / "templates" / "norms_003.toml") == NORMS_003
    True
    """
    return _checked(read_toml(path, "the prompts"), str(path))


def _checked(table: dict[str, Any], source: str) -> NormPrompts:
    check_layout(table, LAYOUT, source)
    return NormPrompts(
        **{name: table[name] for name in PARTS},
        roles=MappingProxyType(table["role"]),
        questions=MappingProxyType({name: Question(**row) for name, row in table["question"].items()}),
        writings=MappingProxyType({name: Writing(**row) for name, row in table["writing"].items()}),
    )


PUBLISHED = "norms_003.toml"
NORMS_003 = _checked(packaged_toml(PUBLISHED), PUBLISHED)
"""Our prompts for the operations of [003], 'norms-003/1'."""
