"""An agent with its norms and its plan, as it changes in a society."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from meanfield import InputError
from meanfield.toolbox import is_number, one_of, real_number
from theory.norms import Behaviour, NormAgent
from theory.toolbox import KINDS

OPPOSITE = {"for": "against", "against": "for"}
LEVELS = ("superseded", "qualified", "complying")  # the later ones count before the earlier ones


@dataclass(frozen=True)
class PersonalNorm:
    """A norm as one agent holds it: its text, importance from 1 to 100, and kind.

    It is 'qualified', created or accepted, 'informed', without a passed check, or 'superseded' by an abstract norm. It
    is about (behaviour, standard) pairs, and an abstract one has the contents of its parts. Source: [003] Section 2.1.
    """

    content: str
    utility: float
    kind: str
    state: str = "qualified"
    about: tuple[tuple[str, str], ...] = ()
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.content, str) or not self.content.strip():
            raise InputError(f"content = {self.content!r}: expected text")
        real_number(f"utility of {self.content!r}", self.utility, least=1, most=100)
        one_of("kind", self.kind, KINDS)

    @classmethod
    def of(cls, behaviour: Behaviour, standard: str) -> PersonalNorm:
        """The norm of an agent who accepted the standard."""
        content, about = behaviour.standards[standard], ((behaviour.name, standard),)
        return cls(content, behaviour.utility, behaviour.kind, about=about)


Norms = tuple[PersonalNorm, ...]


@dataclass(frozen=True)
class Member:
    """An agent, its norms in order of arrival, its last plan, and the contents of norms that it has planned by.

    Every change gives a new member. No two norms have the same content.
    """

    agent: NormAgent
    norms: Norms = ()
    plan: str = ""
    follows: frozenset[str] = frozenset()

    @cached_property
    def qualified(self) -> Norms:
        """Its qualified norms."""
        return tuple(norm for norm in self.norms if norm.state == "qualified")

    @cached_property
    def held(self) -> Mapping[tuple[str, str], str]:
        """{(behaviour, standard): level} of its qualified norms, a name of `LEVELS`; 'superseded' as a part."""
        levels: dict[tuple[str, str], str] = {}
        for norm in self.qualified:
            level = "superseded" if norm.parts else "complying" if norm.content in self.follows else "qualified"
            for standard in norm.about:
                levels[standard] = max(levels.get(standard, level), level, key=LEVELS.index)
        return levels

    @cached_property
    def informed(self) -> Norms:
        """Norms it knows of and has not accepted, except for behaviours with a norm of its own; the last one last."""
        decided = {behaviour for behaviour, _ in self.held}
        told = (norm for norm in self.norms if norm.state == "informed")
        return tuple(norm for norm in told if decided.isdisjoint(b for b, _ in norm.about))

    def upheld(self, behaviour: str) -> str:
        """The standard for this behaviour that it holds, '' if there is none."""
        return next((standard for other, standard in self.held if other == behaviour), "")

    def holds(self, norm: PersonalNorm) -> bool:
        """Whether one of its qualified norms says the same."""
        return any(norm.content == held.content for held in self.qualified)

    def told_of(self, norm: PersonalNorm) -> Member:
        """The member with `norm` as the last in its information; norms that it holds or has superseded stay."""
        if any(other.content == norm.content and other.state != "informed" for other in self.norms):
            return self
        rest = (other for other in self.norms if other.content != norm.content)
        return self._with((*rest, replace(norm, state="informed")), self.follows)

    def accepts(self, norm: PersonalNorm) -> Member:
        """The member with `norm` qualified, in place of all norms that it contradicts, which become information.

        The parts of an abstract norm that loses hold again if they are not contradicted. A norm that was superseded is
        planned by at once, as its abstract norm was, and an abstract norm goes where all of its parts hold again.
        """
        norms = {other.content: other for other in self.norms}
        before = norms.setdefault(norm.content, norm)
        norms[norm.content] = replace(before, about=norm.about)
        follows = set(self.follows)
        opposed = {(behaviour, OPPOSITE[standard]) for behaviour, standard in norm.about}

        def lose(content: str) -> None:
            parts = norms[content].parts
            norms[content] = replace(norms[content], state="informed", parts=())
            for part in (part for part in parts if norms[part].state == "superseded"):
                if opposed.isdisjoint(norms[part].about):
                    norms[part] = replace(norms[part], state="qualified")
                    follows.add(part)
                else:
                    lose(part)

        for held in self.qualified:
            if not opposed.isdisjoint(held.about):
                lose(held.content)
        before = norms.pop(norm.content)
        if before.state == "superseded":
            follows.add(norm.content)
        norms[norm.content] = replace(norm, state="qualified", parts=before.parts)
        for one in [one for one in norms.values() if all(norms[part].state == "qualified" for part in one.parts)]:
            if one.parts:
                lose(one.content)
        return self._with(norms.values(), follows)

    def among(self, contents: Sequence[str]) -> Norms:
        """Its qualified norms with these contents, which are one or more different ones."""
        found = tuple(norm for content in contents for norm in self.qualified if norm.content == content)
        if not found or len(found) < len(contents) or len(set(contents)) < len(contents):
            raise InputError(f"contents = {contents!r}: expected one or more different qualified norms")
        return found

    def plans(self, text: str, follows: Iterable[str]) -> Member:
        """The member with another plan; it goes on to plan by the norms of earlier ones."""
        if unknown := set(follows).difference(norm.content for norm in self.qualified):
            raise InputError(
                f"plan of {self.agent.name} follows {min(unknown)!r}: expected qualified norms of the agent"
            )
        return replace(self._with(self.norms, self.follows.union(follows)), plan=text)

    def generalises(self, contents: Sequence[str], abstract: str, kind: str, weights: Sequence[float]) -> Member:
        """The member with the qualified norms `contents` superseded by a general one that says `abstract`."""
        subset = self.among(contents)
        if len(weights) != len(contents) or not all(is_number(w) and w > 0 for w in weights):
            raise InputError(f"weights = {weights!r}: expected {len(contents)} positive numbers")
        utilities, shares = [norm.utility for norm in subset], [w / max(weights) for w in weights]  # no sum overflows
        mean = sum(w * u for w, u in zip(shares, utilities, strict=True)) / sum(shares)
        utility = min(max(mean, min(utilities)), max(utilities))  # a mean of 100s may round to more than 100
        about = dict.fromkeys(one for norm in subset for one in norm.about)
        general = PersonalNorm(abstract, utility, kind, about=tuple(about), parts=tuple(contents))
        rest = (n for n in self.norms if n.content != abstract or n.state != "informed")
        return self._with(
            (*(replace(n, state="superseded") if n in subset else n for n in rest), general), self.follows
        )

    def _with(self, norms: Iterable[PersonalNorm], follows: Iterable[str]) -> Member:
        norms = tuple(norms)
        kept = frozenset(follows).intersection(norm.content for norm in norms if norm.state == "qualified")
        return replace(self, norms=norms, follows=kept)

    def as_dict(self) -> dict[str, Any]:
        """The norms and the plan, as JSON."""
        norms = [
            {"content": norm.content, "utility": norm.utility, "kind": norm.kind}
            | {"activated": norm.state == "qualified", "valid": norm.state != "informed"}
            | {"about": [list(one) for one in norm.about]}
            | ({"parts": list(norm.parts)} if norm.parts else {})
            for norm in self.norms
        ]
        return {"norms": norms, "plan": {"text": self.plan, "follows": sorted(self.follows)}}
