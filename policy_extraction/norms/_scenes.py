"""Scenes in which yes/no operations are probed, and their right answers."""

from __future__ import annotations

from typing import Any, NamedTuple

from policy_extraction.norms._cells import Cell
from policy_extraction.norms._prompts import QUESTIONS, Asked, NormPrompts

OTHER_KIND = {"injunctive": "descriptive", "descriptive": "injunctive"}


class Scene(NamedTuple):
    """The question of an operation about a standard, in a situation."""

    operation: str
    situation: str
    right: bool | None  # the right answer, as the truth of the operation; None without one
    held: str = ""  # the relation of the norms in the prompt to the standard; '' for no norms
    text: str = ""  # name of the text that is seen, said, thought, planned or done
    turned: bool = False  # whether the text follows the opposite standard, or the kind is the other one

    @property
    def name(self) -> str:
        """Operation and situation."""
        return f"{self.operation}/{self.situation}"

    def asked(self, cell: Cell, prompts: NormPrompts) -> Asked:
        """The question about the cell."""
        slots = {slot: self._slot(slot, cell, prompts) for slot in QUESTIONS[self.operation]}
        return prompts.question(self.operation, cell.agent, **slots)

    def answer(self, cell: Cell) -> bool | None:
        """The right answer for the cell; only entrepreneurs have to talk, and only for norms of their campaign."""
        if self.operation == "decide_to_talk" and not (cell.agent.type == "entrepreneur" and cell.willing):
            return None
        return self.right

    def _slot(self, slot: str, cell: Cell, prompts: NormPrompts) -> str:
        if slot in ("norms", "informed"):
            return prompts.listed(cell.norms(self.held))
        if slot == "content":
            return cell.content
        if slot == "kind":
            return OTHER_KIND[cell.behaviour.kind] if self.turned else cell.behaviour.kind
        return cell.text(self.text, cell.opposite if self.turned else cell.standard)


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
