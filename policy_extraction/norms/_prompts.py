"""The prompts of a norm society as data."""

from __future__ import annotations

import hashlib
import json
import string
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from meanfield import InputError
from policy_extraction._toolbox.texts import check_name
from policy_extraction.prompts._template import Prompt

PERSON = frozenset({"name", "description", "role"})
"""Slots that every prompt may have: who is asked, and what the agent's type is told."""

QUESTIONS: dict[str, frozenset[str]] = {
    "detect_conflict": frozenset({"norms", "observation"}),
    "decide_to_talk": frozenset({"norms", "observation"}),
    "has_thought": frozenset({"norms", "observation"}),
    "identify_chat": frozenset({"informed", "text"}),
    "identify_thought": frozenset({"informed", "text"}),
    "is_consistent": frozenset({"content", "text"}),
    "is_unique": frozenset({"content", "norms"}),
    "is_type_right": frozenset({"content", "kind"}),
    "is_conflict_free": frozenset({"content", "norms"}),
    "plan_follows": frozenset({"content", "plan"}),
    "action_follows": frozenset({"content", "action"}),
    "is_normative": frozenset({"norms", "action"}),
    "comply_in_plan": frozenset({"norms", "action"}),
    "comply_in_action": frozenset({"norms", "action"}),
}
"""The slots that each question needs, beside $options."""

WRITINGS: dict[str, frozenset[str]] = {
    "create": frozenset({"n"}),
    "talk": frozenset({"norms", "observation", "partner"}),
    "reply": frozenset({"partner", "text"}),
    "think": frozenset({"norms", "observation"}),
    "identify": frozenset({"informed", "source", "text"}),
    "classify": frozenset({"norms"}),
    "abstract": frozenset({"n", "norms", "theme"}),
    "plan": frozenset({"norms"}),
    "act": frozenset({"norms", "plan", "shows_against", "shows_for"}),
}
"""The slots that each request to write needs."""

ROLES = ("entrepreneur", "ordinary")
ANSWERS = ("yes", "no")


@dataclass(frozen=True)
class Question:
    """A question that is answered with yes or no.

    Attributes
    ----------
    true_if
        Which answer makes the operation true, 'yes' or 'no': one that asks for a duplicate is true, that is the norm
        unique, if the answer is no.
    system, user
        Messages in the notation of `string.Template`.
    """

    true_if: str
    system: str
    user: str


@dataclass(frozen=True)
class Writing:
    """A request to write; the answer goes on from `answer_prefix`, which has no slots."""

    system: str
    user: str
    answer_prefix: str


class Asked(NamedTuple):
    """A question as it is asked: a prompt with 'yes' first and one with 'no' first."""

    yes_first: Prompt
    no_first: Prompt


@dataclass(frozen=True)
class NormPrompts:
    """All prompts of a norm society.

    Attributes
    ----------
    name
        Name and version, part of a result's provenance.
    yes, no
        The words that answer a question.
    options
        What ``$options`` is in a question, with the slots ``$first`` and ``$second`` for the words.
    answer_prefix
        How the answer to a question starts, up to the word.
    norm
        One norm in a list, with the slots ``$number`` and ``$content`` and, if wanted, ``$kind``.
    no_norms
        What stands for an empty list.
    retry
        What follows a request that is made again; ``$problem`` says what was wrong with the answer.
    roles
        What ``$role`` is for each type of agent.
    questions, writings
        By name, those of `QUESTIONS` and `WRITINGS`. Beside their own slots they may have ``$name``, ``$description``
        and ``$role``.

    Raises
    ------
    InputError
        If a slot is missing or unknown, a prompt is, or `true_if` is neither yes nor no.
    """

    name: str
    yes: str
    no: str
    options: str
    answer_prefix: str
    norm: str
    no_norms: str
    retry: str
    roles: Mapping[str, str]
    questions: Mapping[str, Question]
    writings: Mapping[str, Writing]

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InputError("prompts: their name is empty; expected a name and a version, as in 'my-norms/1'")
        check_name("prompts: their name", self.name)
        if not self.yes.strip() or not self.no.strip() or self.yes == self.no:
            raise self._wrong(f"yes and no are {self.yes!r} and {self.no!r}; expected two different words")
        self._check("options", [self.options], frozenset({"first", "second"}))
        self._check("norm", [self.norm], frozenset({"number", "content"}), frozenset({"kind"}))
        self._check("retry", [self.retry], frozenset({"problem"}))
        for what, known, found in (
            ("role", ROLES, self.roles),
            ("question", QUESTIONS, self.questions),
            ("writing", WRITINGS, self.writings),
        ):
            if set(found) != set(known):
                raise self._wrong(f"{what} has {', '.join(found) or 'nothing'}; expected {', '.join(known)}")
        for name, question in self.questions.items():
            place = f"question.{name}"
            self._check(place, [question.system, question.user], QUESTIONS[name] | {"options"}, PERSON)
            if question.true_if not in ANSWERS:
                raise self._wrong(f"{place}.true_if = {question.true_if!r}; expected yes or no")
        for name, writing in self.writings.items():
            self._check(f"writing.{name}", [writing.system, writing.user], WRITINGS[name], PERSON)

    def __repr__(self) -> str:
        """Short, since it is a default of functions."""
        return f"NormPrompts({self.name!r}, …)"

    @property
    def sha256(self) -> str:
        """A fingerprint of all texts."""
        plain = vars(self) | {"roles": dict(self.roles)}
        for name in ("questions", "writings"):
            plain[name] = {key: asdict(one) for key, one in plain[name].items()}
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()

    @property
    def words(self) -> tuple[str, str]:
        """The words for yes and no."""
        return self.yes, self.no

    def question(self, name: str, agent: Any, **slots: str) -> Asked:
        """The question to an agent, which has a name, a description and a type."""
        asked = self.questions[name]
        prompts = []
        for first, second in (self.words, self.words[::-1]):
            options = _fill(self.options, {"first": first, "second": second})
            filled = self._person(agent) | slots | {"options": options}
            prompts.append(Prompt(_fill(asked.system, filled), _fill(asked.user, filled), self.answer_prefix))
        return Asked(*prompts)

    def writing(self, name: str, agent: Any, problem: str = "", **slots: str) -> Prompt:
        """The request to an agent; with a `problem` where an answer was refused."""
        asked = self.writings[name]
        filled = self._person(agent) | slots
        again = "\n" + _fill(self.retry, {"problem": problem}) if problem else ""
        return Prompt(_fill(asked.system, filled), _fill(asked.user, filled) + again, asked.answer_prefix)

    def listed(self, norms: Iterable[Any]) -> str:
        """Norms, which have a content and a kind, a line each and numbered from 1."""
        lines = [
            _fill(self.norm, {"number": str(number), "content": norm.content, "kind": norm.kind})
            for number, norm in enumerate(norms, start=1)
        ]
        return "\n".join(lines) or self.no_norms

    def _person(self, agent: Any) -> dict[str, str]:
        return {"name": agent.name, "description": agent.description, "role": self.roles[agent.type]}

    def _check(
        self, place: str, texts: list[str], needed: frozenset[str], allowed: frozenset[str] = frozenset()
    ) -> None:
        templates = [string.Template(text) for text in texts]
        if not all(template.is_valid() for template in templates):
            raise self._wrong(f"{place} has a $ that starts no slot; a dollar sign is written $$")
        found = {slot for template in templates for slot in template.get_identifiers()}
        if needed - found:
            missing = " and ".join(f"${slot}" for slot in sorted(needed - found))
            raise self._wrong(f"{place} lacks the slot {missing}")
        if found - needed - allowed:
            expected = ", ".join(f"${slot}" for slot in sorted(needed | allowed))
            raise self._wrong(f"{place} has the slot ${min(found - needed - allowed)}; expected {expected}")

    def _wrong(self, what: str) -> InputError:
        return InputError(f"prompts {self.name}: {what}")


def _fill(text: str, slots: Mapping[str, str]) -> str:
    return string.Template(text).substitute(slots)
