"""The prompts of a norm society, from the package's TOML file or a user's."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from string import Template
from typing import Any

from meanfield import InputError
from meanfield.toolbox import one_of
from policy_extraction._toolbox.texts import check_name
from policy_extraction.measuring._yes_no import Asked
from policy_extraction.prompts._slots import check_slots, fill
from policy_extraction.prompts._template import Prompt
from policy_extraction.prompts._toml import TEXT, check_layout, packaged_toml, read_toml

PUBLISHED = packaged_toml("norms_003.toml")
QUESTIONS = tuple(PUBLISHED["question"])
STANDARDS = ("for", "against")
ANSWERS = ("yes", "no")
PERSON = frozenset({"name", "description", "role"})
"""Slots that every prompt may have: the agent's name and description, and the text of its type."""


@dataclass(frozen=True)
class NormPrompts:
    """All prompts of a norm society: the content of a file, which `load_prompts` describes and checks."""

    table: Mapping[str, Any]

    def __repr__(self) -> str:
        """Short, because signatures show it as a default."""
        return f"NormPrompts({self.name!r}, …)"

    @property
    def name(self) -> str:
        """Name and version, part of a result's provenance."""
        return self.table["name"]

    @property
    def sha256(self) -> str:
        """A fingerprint of all texts."""
        return hashlib.sha256(json.dumps(self.table, sort_keys=True).encode()).hexdigest()

    @property
    def words(self) -> tuple[str, str]:
        """The words for yes and no."""
        return self.table["yes"], self.table["no"]

    def is_true(self, name: str, answer: str) -> bool:
        """Whether this answer, 'yes' or 'no', makes the operation true."""
        return answer == self.table["question"][name]["true_if"]

    def question(self, name: str, agent: Any, **slots: str) -> Asked:
        """The question to an agent that has a name, a description and a type."""
        asked = self.table["question"][one_of("name", name, QUESTIONS)]
        prompts = []
        for first, second in (self.words, self.words[::-1]):
            options = fill(self.table["options"], {"first": first, "second": second})
            filled = slots | self._person(agent) | {"options": options}
            prompts.append(
                Prompt(*(fill(asked[part], filled) for part in ("system", "user")), self.table["answer_prefix"])
            )
        return Asked(*prompts)

    def writing(self, name: str, agent: Any, problem: str = "", **slots: str) -> Prompt:
        """The request to an agent; `problem` says why the last answer was refused."""
        asked, filled = self.table["writing"][name], slots | self._person(agent)
        again = "\n" + fill(self.table["retry"], {"problem": problem}) if problem else ""
        return Prompt(fill(asked["system"], filled), fill(asked["user"], filled) + again, asked["answer_prefix"])

    def listed(self, norms: Iterable[Any]) -> str:
        """The norms as numbered lines; each has a content and a kind."""
        lines = [
            fill(self.table["norm"], {"number": str(number), "content": norm.content, "kind": norm.kind})
            for number, norm in enumerate(norms, start=1)
        ]
        return "\n".join(lines) or self.table["no_norms"]

    def _person(self, agent: Any) -> dict[str, str]:
        return {"name": agent.name, "description": agent.description, "role": self.table["role"][agent.type]}


def load_prompts(path: str | os.PathLike[str]) -> NormPrompts:
    """Read prompts from a TOML file with the layout of `policy_extraction/prompts/templates/norms_003.toml`.

    Texts of the file are `name`, which has the version; `yes` and `no`, the words that answer a question; `options`,
    the text of ``$options`` in a question, with the slots ``$first`` and ``$second`` for the two words;
    `answer_prefix`, the beginning of the answer up to the word; `norm`, one norm in a list, with ``$number``,
    ``$content`` and optionally ``$kind``; `no_norms`, an empty list; and `retry`, the text after a repeated request,
    with ``$problem``. The table `role` has the text of ``$role`` for each type of agent; `question.NAME` has `system`,
    `user` and `true_if`, the answer that makes the yes/no operation true; and `writing.NAME` has `system`, `user` and
    the `answer_prefix` that the answer continues. System and user message together need all slots of the published
    ones, and may have ``$name``, ``$description`` and ``$role``. A plain dollar sign is written ``$$``.

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
    table = read_toml(path, "the prompts")
    check_layout(table, _layout(PUBLISHED), str(path))
    check_name("prompts: name", table["name"])
    at = f"prompts {table['name']}:"
    if not table["yes"].strip() or not table["no"].strip() or table["yes"] == table["no"]:
        raise InputError(f"{at} yes and no are {table['yes']!r} and {table['no']!r}; expected two different words")
    check_slots(f"{at} options", [table["options"]], {"first", "second"})
    check_slots(f"{at} norm", [table["norm"]], {"number", "content"}, {"kind"})
    check_slots(f"{at} retry", [table["retry"]], {"problem"})
    for what in ("question", "writing"):
        for name, row in table[what].items():
            needed = _slots(PUBLISHED[what][name]) - PERSON
            check_slots(f"{at} {what}.{name}", [row["system"], row["user"]], needed, PERSON)
            if row.get("true_if", "yes") not in ANSWERS:
                raise InputError(f"{at} {what}.{name}.true_if = {row['true_if']!r}; expected yes or no")
    return NormPrompts(table)


def _layout(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _layout(value) if isinstance(value, Mapping) else TEXT for name, value in table.items()}


def _slots(row: Mapping[str, str]) -> set[str]:
    return {slot for part in ("system", "user") for slot in Template(row[part]).get_identifiers()}


NORMS_003 = NormPrompts(PUBLISHED)
"""Our prompts for the operations of [003], 'norms-003/1'."""
