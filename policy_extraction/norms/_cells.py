"""The agents and standards of the scenes in which yes/no operations are probed, and their texts."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from meanfield import InputError
from policy_extraction._toolbox.texts import check_name
from policy_extraction.prompts._toml import packaged_toml

SCENES_003 = packaged_toml("norms_003_scenes.toml")
STANDARDS = ("for", "against")
OPPOSITE = {"for": "against", "against": "for"}


class Held(NamedTuple):
    """A norm in a list."""

    content: str
    kind: str


@dataclass(frozen=True)
class Cell:
    """The agent and the standard of a behaviour in a scene, and their texts."""

    agent: Any  # who is asked
    actor: str  # name of someone else
    behaviour: Any
    standard: str
    unrelated: Any  # another behaviour

    @property
    def opposite(self) -> str:
        """The other standard."""
        return OPPOSITE[self.standard]

    @property
    def willing(self) -> bool:
        """Whether the agent likes the standard."""
        return self.agent.prefers[self.behaviour.name] == self.standard

    @property
    def content(self) -> str:
        """The text of the standard."""
        return self.behaviour.standards[self.standard]

    @property
    def abstract(self) -> str:
        """A general norm that covers the standard."""
        return SCENES_003["abstract"][self.behaviour.name][self.standard]

    def norms(self, held: str) -> tuple[Held, ...]:
        """The norms of someone who holds 'none' about the behaviour, the 'same', the 'opposed' or an 'abstract' one.

        'none' gives a norm about another behaviour, and '' gives no norm at all.
        """
        if not held:
            return ()
        if held == "none":
            return (Held(self.unrelated.standards[self.standard], self.unrelated.kind),)
        texts = {
            "same": self.content,
            "opposed": self.behaviour.standards[self.opposite],
            "abstract": self.abstract,
        }
        return (Held(texts[held], self.behaviour.kind),)

    def text(self, name: str, standard: str) -> str:
        """A text of the scenes in which one acts by `standard`."""
        slots = {"name": self.agent.name, "actor": self.actor, "content": self.behaviour.standards[standard]}
        return string.Template(SCENES_003[name]).substitute(slots, does=self.behaviour.shows[standard])


def cells_of(agents: Sequence[Any], behaviours: Sequence[Any]) -> list[Cell]:
    """All cells: every agent with every behaviour and standard, in this order."""
    cells = []
    for agent in agents:
        actor = next(other.name for other in agents if other.name != agent.name)
        for number, behaviour in enumerate(behaviours):
            unrelated = behaviours[number - 1]
            cells += [Cell(agent, actor, behaviour, standard, unrelated) for standard in STANDARDS]
    return cells


def check_cells(agents: Sequence[Any], behaviours: Sequence[Any]) -> None:
    """InputError unless scenes with these agents and behaviours exist."""
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
