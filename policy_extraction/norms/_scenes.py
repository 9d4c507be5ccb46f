"""Hand-made scenes in which yes/no operations are probed, with their texts and right answers."""

from __future__ import annotations

import string
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from meanfield import InputError
from policy_extraction._toolbox.texts import check_name
from policy_extraction.measuring._yes_no import Asked
from policy_extraction.norms._prompts import STANDARDS, NormPrompts
from policy_extraction.prompts._toml import packaged_toml

SCENES_003 = packaged_toml("norms_003_scenes.toml")
OPPOSITE = {"for": "against", "against": "for"}
OTHER_KIND = {"injunctive": "descriptive", "descriptive": "injunctive"}


class Cell(NamedTuple):
    """The agent and the standard of a behaviour in a scene."""

    agent: Any  # who is asked
    actor: str  # name of someone else
    behaviour: Any
    standard: str
    unrelated: Any  # another behaviour

    @property
    def willing(self) -> bool:
        """Whether the agent likes the standard."""
        return self.agent.prefers[self.behaviour.name] == self.standard

    def norms(self, held: str) -> list[Any]:
        """The norm of someone who holds 'none' about the behaviour, the 'same', the 'opposed' or an 'abstract' one.

        'none' gives a norm about another behaviour, and '' gives no norm at all.
        """
        one = self.unrelated if held == "none" else self.behaviour
        standard = OPPOSITE[self.standard] if held == "opposed" else self.standard
        content = SCENES_003["abstract"][one.name][standard] if held == "abstract" else one.standards[standard]
        return [SimpleNamespace(content=content, kind=one.kind)] if held else []

    def text(self, name: str, standard: str) -> str:
        """A text of the scenes in which one acts by `standard`."""
        slots = {"name": self.agent.name, "actor": self.actor, "content": self.behaviour.standards[standard]}
        return string.Template(SCENES_003[name]).substitute(slots, does=self.behaviour.shows[standard])


class Scene(NamedTuple):
    """The question of an operation about a standard, in a situation."""

    operation: str
    situation: str
    right: bool | None  # the right answer, as the truth of the operation; None without one
    held: str = ""  # the relation of the norms in the prompt to the standard; '' for no norms
    text: str = ""  # name of the text that is seen, said, thought, planned or done
    turned: bool = False  # whether the text follows the opposite standard, or the kind is the other one

    def asked(self, cell: Cell, prompts: NormPrompts) -> Asked:
        """The question about the cell."""
        kind, norms = cell.behaviour.kind, prompts.listed(cell.norms(self.held))
        slots = {"norms": norms, "informed": norms, "content": cell.behaviour.standards[cell.standard]}
        slots["kind"] = OTHER_KIND[kind] if self.turned else kind
        if self.text:
            text = cell.text(self.text, OPPOSITE[cell.standard] if self.turned else cell.standard)
            slots |= dict.fromkeys(("observation", "text", "plan", "action"), text)
        return prompts.question(self.operation, cell.agent, **slots)

    def answer(self, cell: Cell) -> bool | None:
        """The right answer for the cell; only entrepreneurs have to talk, and only for norms of their campaign."""
        if self.operation == "decide_to_talk" and not (cell.agent.type == "entrepreneur" and cell.willing):
            return None
        return self.right


def _both(operation: str, held: str = "", text: str = "") -> tuple[Scene, Scene]:
    """Two scenes: true if the text follows the standard, false if it follows the opposite."""
    return Scene(operation, "right", True, held, text), Scene(operation, "wrong", False, held, text, True)


HELD: dict[str, Any] = {
    "is_unique": {"none": True, "same": False, "opposed": True, "abstract": None},
    "is_conflict_free": {"none": True, "same": True, "opposed": False, "abstract": True},
    "has_thought": dict.fromkeys(("none", "same", "opposed", "abstract")),
}
"""Right answers by the held norms."""

SCENES: tuple[Scene, ...] = (
    Scene("detect_conflict", "opposite", True, "same", "observation", True),
    Scene("detect_conflict", "same", False, "same", "observation"),
    Scene("detect_conflict", "abstract", True, "abstract", "observation", True),
    Scene("decide_to_talk", "opposite", True, "same", "observation", True),
    Scene("identify_chat", "first", True, "", "chat"),
    Scene("identify_chat", "reminded", True, "same", "chat"),
    Scene("identify_chat", "small talk", False, "", "small_talk"),
    Scene("identify_thought", "normative", True, "", "normative"),
    Scene("identify_thought", "habit", False, "", "habit"),
    *_both("is_consistent", text="chat"),
    *_both("is_type_right"),
    *_both("plan_follows", text="plan"),
    *_both("action_follows", text="observation"),
    *_both("is_normative", "same", "observation"),
    Scene("comply_in_plan", "own", True, "same", "action"),
    Scene("comply_in_action", "own", True, "same", "action"),
    Scene("comply_in_action", "abstract", True, "abstract", "action"),
    *(Scene(name, held, right, held, "observation") for name, row in HELD.items() for held, right in row.items()),
)
"""All scenes. In those about compliance, the right answer is to follow a norm that one holds."""


def cells_of(agents: Sequence[Any], behaviours: Sequence[Any]) -> list[Cell]:
    """Every agent with every behaviour and standard, in this order; InputError unless scenes with them exist."""
    for what, found in (("agents", agents), ("behaviours", behaviours)):
        names = [getattr(one, "name", one) for one in found]
        if len(names) < 2 or len(set(names)) < len(names):
            raise InputError(f"{what} = {names}: expected two or more with different names")
        for name in names:
            check_name(what, name)
    known = SCENES_003["abstract"]
    for behaviour in behaviours:
        if behaviour.name not in known:
            raise InputError(f"behaviours have {behaviour.name!r}: expected some of {', '.join(known)}")
        for agent in agents:
            if agent.prefers.get(behaviour.name) not in STANDARDS:
                raise InputError(f"agents: {agent.name} prefers nothing in {behaviour.name!r}: expected for or against")
    others = {one.name: next(other.name for other in agents if other.name != one.name) for one in agents}
    return [
        Cell(agent, others[agent.name], behaviour, standard, behaviours[number - 1])
        for agent in agents
        for number, behaviour in enumerate(behaviours)
        for standard in STANDARDS
    ]
