"""The norms and the plan of one member of a norm society, and their changes.

Norms are filed under the standards that they are about, (behaviour, 'for' or 'against') each, since texts alone don't
show contradictions. An abstract norm is about everything that its parts are about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from theory.norms import NormAgent, NormDatabase, PersonalNorm, Plan

Standard = tuple[str, str]
OPPOSITE = {"for": "against", "against": "for"}


@dataclass(frozen=True)
class Member:
    """An agent with its database and plan; every change gives a new member.

    Parameters
    ----------
    agent
        The agent.
    database
        Its norms.
    plan
        The last plan, with all norms that the agent has planned by so far and still holds.
    about
        {content: standards} of the norms in the database.
    parts
        {content: contents} of the abstract norms that are qualified or superseded, and the norms that each replaced.
    """

    agent: NormAgent
    database: NormDatabase = field(default_factory=NormDatabase)
    plan: Plan = field(default_factory=lambda: Plan("", frozenset()))
    about: Mapping[str, tuple[Standard, ...]] = field(default_factory=dict)
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def qualified(self) -> tuple[PersonalNorm, ...]:
        """Its qualified norms."""
        return self.database.qualified

    @cached_property
    def held(self) -> Mapping[Standard, str]:
        """{standard: level} of all standards of its qualified norms: 'qualified', 'complying' or 'superseded'.

        A norm of its own counts before an abstract one, and one that it plans by before one that it does not.
        """
        order = ("superseded", "qualified", "complying")
        levels: dict[Standard, str] = {}
        for norm in self.qualified:
            level = "complying" if norm.content in self.plan.follows else "qualified"
            level = "superseded" if norm.content in self.parts else level
            for standard in self.about[norm.content]:
                levels[standard] = max(levels.get(standard, level), level, key=order.index)
        return levels

    @cached_property
    def informed(self) -> tuple[PersonalNorm, ...]:
        """Norms it knows of and has not accepted, except for behaviours with a norm of its own; the last one last."""
        decided = {behaviour for behaviour, _ in self.held}
        told = (norm for norm in self.database.norms if norm.state == "informed")
        return tuple(norm for norm in told if decided.isdisjoint(b for b, _ in self.about[norm.content]))

    @cached_property
    def informed_last(self) -> Mapping[str, str]:
        """{behaviour: 'for' or 'against'}, the last standard of each among `informed`."""
        return {behaviour: standard for norm in self.informed for behaviour, standard in self.about[norm.content]}

    def upheld(self, behaviour: str) -> str:
        """The standard for this behaviour that it holds, '' if there is none."""
        return next((standard for other, standard in self.held if other == behaviour), "")

    def told_of(self, norm: PersonalNorm, about: tuple[Standard, ...]) -> Member:
        """With `norm` as the last in its information; norms that it holds or has superseded stay as they are."""
        rest = [other for other in self.database.norms if other.content != norm.content]
        if any(other.valid for other in self.database.norms if other.content == norm.content):
            return self
        database = NormDatabase(tuple(rest)).informed_of(norm)
        return replace(self, database=database, about={**self.about, norm.content: about})

    def accepts(self, norm: PersonalNorm, about: tuple[Standard, ...]) -> Member:
        """With `norm` qualified, in place of all norms that it contradicts.

        Norms that lose become information. Of an abstract norm that loses, the parts that are not contradicted hold
        again. A norm that was superseded is planned by at once, as its abstract norm was, and an abstract norm is
        dropped where all of its parts hold again.
        """
        norms = {other.content: other for other in self.database.norms}
        parts, follows = dict(self.parts), set(self.plan.follows)
        filed = {**self.about, norm.content: about}
        opposed = {(behaviour, OPPOSITE[standard]) for behaviour, standard in about}

        def lose(content: str) -> None:
            norms[content] = replace(norms[content], activated=False, valid=False)
            for part in parts.pop(content, ()):
                if norms[part].state != "superseded":
                    continue
                if opposed.isdisjoint(filed[part]):
                    norms[part] = replace(norms[part], activated=True)
                    follows.add(part)
                else:
                    lose(part)

        for held in self.qualified:
            if not opposed.isdisjoint(filed[held.content]):
                lose(held.content)
        before = norms.pop(norm.content, norm)
        if before.state == "superseded":
            follows.add(norm.content)
        norms[norm.content] = replace(norm, activated=True, valid=True)
        for content in [one for one, its in parts.items() if all(norms[part].qualified for part in its)]:
            lose(content)
        return _member(self, NormDatabase(tuple(norms.values())), filed, parts, follows)

    def plans_by(self, plan: Plan) -> Member:
        """With another plan; it goes on to plan by the norms of earlier ones."""
        follows = plan.follows | self.plan.follows
        made = replace(self, plan=Plan(plan.text, follows))
        return _member(made, self.database, self.about, self.parts, follows)

    def generalises(self, contents: Sequence[str], abstract: str, kind: str, weights: Sequence[float]) -> Member:
        """With the qualified norms `contents` superseded by a general one that says `abstract`.

        One norm is enough, since an agent may have others that its database does not keep.
        """
        unheard = NormDatabase(tuple(n for n in self.database.norms if n.content != abstract or n.valid))
        database = unheard.synthesised(contents, abstract, kind, weights, with_others=True)
        about = tuple(dict.fromkeys(one for content in contents for one in self.about[content]))
        parts = {**self.parts, abstract: tuple(contents)}
        return _member(self, database, {**self.about, abstract: about}, parts, self.plan.follows)


def _member(
    member: Member,
    database: NormDatabase,
    about: Mapping[str, tuple[Standard, ...]],
    parts: Mapping[str, tuple[str, ...]],
    follows: set[str] | frozenset[str],
) -> Member:
    kept = frozenset(follows).intersection(norm.content for norm in database.qualified)
    plan = replace(member.plan, follows=kept)
    return replace(member, database=database, about=about, parts=parts, plan=plan)
