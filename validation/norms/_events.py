"""Events of a norm society: agents start, meet, plan and synthesise.

An encounter is as in `theory.norms.reaction_model`, [003] Section 2:

    the actor acts (act); the observer may find this in conflict with its norms (detect_conflict) and talk about it
    (decide_to_talk, talk); then the actor may learn the norm that they talk about (identify and the check);
    else the observer may have a thought (think) and learn the norm that is in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meanfield import InputError
from theory.norms import Behaviour, NormRates
from theory.toolbox import STANDARDS, PersonalNorm
from validation.norms._member import OPPOSITE, Member, Norms
from validation.norms._questions import Questions


@dataclass
class Event:
    """An event and its results."""

    what: str  # 'start', 'encounter', 'plan' or 'synthesis'
    behaviour: str = ""  # subject of the encounter
    seen: list[str] = field(default_factory=list)  # some of 'conflict', 'chat' and 'thought'
    changed: dict[int, Member] = field(default_factory=dict)  # new states, by number


@dataclass(frozen=True)
class Rules:
    """The rules of events."""

    ask: Questions
    behaviours: tuple[Behaviour, ...]
    rates: NormRates
    n_created: int

    @property
    def frequencies(self) -> tuple[float, float, float]:
        """Encounters, plans and looks at synthesis, of an agent a day."""
        meetings = len(self.behaviours) * self.rates.encounters_per_day
        return meetings, self.rates.plans_per_day, self.rates.syntheses_per_day

    def play(self, members: Sequence[Member], number: int, rng: np.random.Generator) -> Event:
        """Event number `number`, the start being 0."""
        with self.ask.of_event(number, rng):
            if number == 0:
                return self._start(members)
            meeting, planning, _ = self.frequencies
            which = rng.random() * sum(self.frequencies)
            first = int(rng.random() * len(members))
            if which < meeting:
                second = int(rng.random() * (len(members) - 1))
                behaviour = self.behaviours[int(rng.random() * len(self.behaviours))]
                return self._encounter(members, first, second + (second >= first), behaviour)
            event = Event("plan" if which < meeting + planning else "synthesis")
            after = self._plan(members[first]) if event.what == "plan" else self._synthesis(members[first])
            if after != members[first]:
                event.changed[first] = after
            return event

    def _start(self, members: Sequence[Member]) -> Event:
        """Entrepreneurs create their norms and keep to them."""
        event = Event("start")
        for number, member in enumerate(members):
            if member.agent.type != "entrepreneur":
                continue
            created = self.ask("create", (), member.agent, n=self.n_created)
            if len(created) > self.n_created:
                found = f"create of {member.agent.name} answered {len(created)} norms"
                raise InputError(f"{found}: expected {self.n_created} at most")
            for one in created:
                norm = self._norm(one, member.agent.prefers.__getitem__)
                member = member if _holds(member, norm) else member.accepts(norm)
            event.changed[number] = member.plans("", {norm.content for norm in member.qualified})
        return event

    def _encounter(self, members: Sequence[Member], observer: int, actor: int, behaviour: Behaviour) -> Event:
        """The observer sees the actor, and one of them may learn from it."""
        event = Event("encounter", behaviour.name)
        one, other = members[observer], members[actor]
        act = self._acts(other, behaviour)
        seen = {"observation": f"{other.agent.name} {behaviour.shows[act['shows']]}.", "behaviour": behaviour.name}
        seen |= {"shows": act["shows"], "normative": act["normative"]}
        said = None
        if one.qualified and self.ask("detect_conflict", False, one.agent, **seen, norms=one.qualified):
            event.seen.append("conflict")
            if self.ask("decide_to_talk", False, one.agent, **seen, norms=one.qualified):
                said = self.ask("talk", None, one.agent, **seen, norms=one.qualified, partner=other.agent)
        if said is not None:
            event.seen.append("chat")
            after, learner = self._learns(other, said, "chat", seen, one), actor
        else:
            thought = self.ask("think", None, one.agent, **seen, norms=one.qualified)
            if thought is None:
                return event
            event.seen.append("thought")
            after, learner = self._learns(one, thought, "thought", seen, one), observer
        if after != members[learner]:
            event.changed[learner] = after
        return event

    def _acts(self, actor: Member, behaviour: Behaviour) -> Mapping[str, Any]:
        habit = {"text": "", "shows": actor.agent.prefers[behaviour.name], "normative": False}
        plan = {"plan": actor.plan, "follows": actor.follows}
        return self.ask("act", habit, actor.agent, behaviour=behaviour, norms=actor.qualified, **plan)

    def _plan(self, member: Member) -> Member:
        plan = self.ask("plan", None, member.agent, norms=member.qualified)
        if plan is None:
            return member
        if unknown := set(plan["follows"]).difference(norm.content for norm in member.qualified):
            found = f"plan of {member.agent.name} follows {min(unknown)!r}"
            raise InputError(f"{found}: expected qualified norms of the agent")
        return member.plans(plan["text"], plan["follows"])

    def _synthesis(self, member: Member) -> Member:
        """Norms with utilities above the threshold are replaced, theme by theme, by a general one.

        A theme of one norm is passed over, unless rates give the agent norms that are not in its database.
        """
        agent, total = member.agent, float(sum(norm.utility for norm in member.qualified))
        if member.qualified and self.rates.synthesises(agent.type, total):
            least = 1 if getattr(self.rates, f"other_utility_{agent.type}") > 0 else 2
            for theme, contents in self.ask("classify", (), agent, norms=member.qualified):
                if len(contents) >= least:
                    member = self._generalises(member, theme, contents)
        return member

    def _learns(self, member: Member, text: str, source: str, seen: Mapping[str, Any], author: Member) -> Member:
        """`member` after a text of `author` in which there may be a norm."""
        found = self.ask("identify", None, member.agent, **seen, text=text, source=source, informed=member.informed)
        if found is None:
            return member
        norm = self._norm(found, lambda name: _taken_as(name, source, seen, author))
        if _holds(member, norm):
            return member
        return member.accepts(norm) if self._passes(member, norm, text, member.qualified) else member.told_of(norm)

    def _passes(self, member: Member, norm: PersonalNorm, text: str, norms: Norms) -> bool:
        """The four steps of the check; the first that fails is the last."""
        agent, of = member.agent, {"content": norm.content, "kind": norm.kind}
        return bool(
            self.ask("is_consistent", False, agent, **of, text=text)
            and self.ask("is_unique", False, agent, **of, norms=norms)
            and self.ask("is_type_right", False, agent, **of)
            and self.ask("is_conflict_free", False, agent, **of, norms=norms)
        )

    def _generalises(self, member: Member, theme: str, contents: Sequence[str]) -> Member:
        subset = member.among(contents)
        answer = self.ask("abstract", None, member.agent, theme=theme, norms=subset)
        if answer is None:
            return member
        content, kind, weights = answer
        if any(norm.content == content and norm.state != "informed" for norm in member.norms):
            return member
        after = member.generalises(contents, content, kind, weights)
        others = tuple(norm for norm in member.qualified if norm not in subset)
        return after if self._passes(member, after.norms[-1], f"{theme}: {' '.join(contents)}", others) else member

    def _norm(self, found: Mapping[str, Any], taken_as: Callable[[str], str]) -> PersonalNorm:
        """The norm of an answer, with the standards that it is about.

        The texts of the behaviours' standards are those standards. Other texts are about the behaviours that they
        mention, and uphold the standard of the situation in which they were found, `taken_as`, '' where it is unknown:
        a text may be ironic, muddled or a double negation, but the position of its author is known.
        """
        content = found["content"]
        about = tuple((b.name, s) for b in self.behaviours for s in STANDARDS if content == b.standards[s])[:1]
        if not about and isinstance(content, str):
            mentioned = (one.name for one in self.behaviours if _mentions(content, one))
            about = tuple((name, standard) for name in mentioned if (standard := taken_as(name)))
        return PersonalNorm(content, found["utility"], found["kind"], about=about)


def _mentions(content: str, behaviour: Behaviour) -> bool:
    pattern = behaviour.mentions or rf"\b{re.escape(behaviour.name)}\b"
    return re.search(pattern, content, re.IGNORECASE) is not None


def _holds(member: Member, norm: PersonalNorm) -> bool:
    return any(norm.content == held.content for held in member.qualified)


def _taken_as(behaviour: str, source: str, seen: Mapping[str, Any], author: Member) -> str:
    """The standard for a behaviour that `author` upholds by its words or thoughts, '' if unknown."""
    if behaviour != seen["behaviour"]:
        return author.upheld(behaviour)
    if source == "thought":
        return seen["shows"]
    return author.upheld(behaviour) or OPPOSITE[seen["shows"]]
