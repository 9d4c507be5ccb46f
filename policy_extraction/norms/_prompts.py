"""The prompts of a norm society as data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from meanfield import InputError
from meanfield.toolbox import checked_methods, one_of
from policy_extraction._toolbox.texts import check_name
from policy_extraction.prompts._slots import check_slots, fill
from policy_extraction.prompts._template import Prompt

PERSON = frozenset({"name", "description", "role"})
"""Slots that every prompt may have: the agent's name and description, and the text of its type."""

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
"""The slots that each question needs besides $options."""

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
    """A yes/no question; its messages are in the notation of `string.Template`."""

    true_if: str  # the answer that makes the operation true; 'no' where `is_unique` asks for a duplicate
    system: str
    user: str


@dataclass(frozen=True)
class Writing:
    """A request to write; the answer continues `answer_prefix`, which has no slots."""

    system: str
    user: str
    answer_prefix: str


class Asked(NamedTuple):
    """The two prompts of a question: 'yes' offered first, and 'no' offered first."""

    yes_first: Prompt
    no_first: Prompt


@checked_methods({"agent": "name description type", "norms": "content kind"}, listed=("norms",))
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
        Text of ``$options`` in a question, with the slots ``$first`` and ``$second`` for the two words.
    answer_prefix
        Beginning of the answer to a question, up to the word.
    norm
        One norm in a list, with the slots ``$number`` and ``$content``, and optionally ``$kind``.
    no_norms
        Text of an empty list.
    retry
        Text after a repeated request; ``$problem`` says what was wrong with the answer.
    roles
        Text of ``$role`` for each type of agent.
    questions, writings
        The prompts of the yes/no operations and of the operations that write, by name. Besides their own slots they may
        have ``$name``, ``$description`` and ``$role``.

    Raises
    ------
    InputError
        If a slot or a prompt is missing or unknown, or `true_if` is neither yes nor no.

    Examples
    --------
    >>> from policy_extraction.norms import NORMS_003
    >>> norms = NORMS_003.listed([theory.norms.behaviour_of("smoking").norm("for")])
    >>> asked = NORMS_003.question("detect_conflict", theory.norms.AGENTS[7], norms=norms, observation="Sam smokes.")
    >>> print(asked.yes_first.user)
    Your norms:
    1. No smoking indoors.
    You see this: Sam smokes.
    Does what you see break one of your norms? Answer with one word, Yes or No.
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
        check_name("prompts: name", self.name)
        if not self.yes.strip() or not self.no.strip() or self.yes == self.no:
            raise InputError(self._at(f"yes and no are {self.yes!r} and {self.no!r}; expected two different words"))
        check_slots(self._at("options"), [self.options], {"first", "second"})
        check_slots(self._at("norm"), [self.norm], {"number", "content"}, {"kind"})
        check_slots(self._at("retry"), [self.retry], {"problem"})
        for what, known, found in (
            ("role", ROLES, self.roles),
            ("question", QUESTIONS, self.questions),
            ("writing", WRITINGS, self.writings),
        ):
            if set(found) != set(known):
                given = ", ".join(found) or "nothing"
                raise InputError(self._at(f"{what} has {given}; expected {', '.join(known)}"))
        for name, question in self.questions.items():
            place = self._at(f"question.{name}")
            check_slots(place, [question.system, question.user], QUESTIONS[name] | {"options"}, PERSON)
            if question.true_if not in ANSWERS:
                raise InputError(f"{place}.true_if = {question.true_if!r}; expected yes or no")
        for name, writing in self.writings.items():
            check_slots(self._at(f"writing.{name}"), [writing.system, writing.user], WRITINGS[name], PERSON)

    def __repr__(self) -> str:
        """Short, because signatures show it as a default."""
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
        """The question to an agent that has a name, a description and a type."""
        asked = self.questions[one_of("name", name, self.questions)]
        prompts = []
        for first, second in (self.words, self.words[::-1]):
            options = fill(self.options, {"first": first, "second": second})
            filled = self._person(agent) | slots | {"options": options}
            prompts.append(Prompt(fill(asked.system, filled), fill(asked.user, filled), self.answer_prefix))
        return Asked(*prompts)

    def writing(self, name: str, agent: Any, problem: str = "", **slots: str) -> Prompt:
        """The request to an agent; `problem` says why the last answer was refused."""
        asked = self.writings[one_of("name", name, self.writings)]
        filled = self._person(agent) | slots
        again = "\n" + fill(self.retry, {"problem": problem}) if problem else ""
        return Prompt(fill(asked.system, filled), fill(asked.user, filled) + again, asked.answer_prefix)

    def listed(self, norms: Iterable[Any]) -> str:
        """The norms as numbered lines; each has a content and a kind."""
        lines = [
            fill(self.norm, {"number": str(number), "content": norm.content, "kind": norm.kind})
            for number, norm in enumerate(norms, start=1)
        ]
        return "\n".join(lines) or self.no_norms

    def _person(self, agent: Any) -> dict[str, str]:
        return {"name": agent.name, "description": agent.description, "role": self.roles[agent.type]}

    def _at(self, place: str) -> str:
        return f"prompts {self.name}: {place}"
