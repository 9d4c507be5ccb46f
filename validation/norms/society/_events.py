"""Events of a norm society: agents start, meet, plan and synthesise.

An encounter is that of `theory.norms.reaction_model`, [003] Section 2:

    the actor acts (act); the observer may find this in conflict with its norms (detect_conflict) and talk about it
    (decide_to_talk, talk); then the actor may learn the norm that they talk about (identify and the check);
    else the observer may have a thought (think) and learn the norm that is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meanfield import InputError
from theory.norms import Action, Behaviour, Information, NormRates, Observation, PersonalNorm, Plan
from theory.toolbox import Norms
from validation.norms.society._filing import file_norm
from validation.norms.society._json import plain
from validation.norms.society._member import OPPOSITE, Member
from validation.norms.society._questions import Questions


@dataclass
class Event:
    """An event and its results.

    Attributes
    ----------
    what
        'start', 'encounter', 'plan' or 'synthesis'.
    behaviour
        Subject of the encounter, else ''.
    seen
        Some of 'conflict', 'chat' and 'thought'.
    changed
        {number of the agent: its new state}, of those who changed.
    """

    what: str
    behaviour: str = ""
    seen: list[str] = field(default_factory=list)
    changed: dict[int, Member] = field(default_factory=dict)


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
                return self.start(members)
            meeting, planning, _ = self.frequencies
            which = rng.random() * sum(self.frequencies)
            first = int(rng.random() * len(members))
            if which < meeting:
                second = int(rng.random() * (len(members) - 1))
                behaviour = self.behaviours[int(rng.random() * len(self.behaviours))]
                return self.encounter(members, first, second + (second >= first), behaviour)
            if which < meeting + planning:
                return self.plan(members, first)
            return self.synthesis(members, first)

    def start(self, members: Sequence[Member]) -> Event:
        """Entrepreneurs create their norms and keep to them."""
        event = Event("start")
        for number, member in enumerate(members):
            if member.agent.type != "entrepreneur":
                continue
            agent = member.agent
            created = self.ask("create", (), agent, self.n_created)
            if len(created) > self.n_created:
                found = f"create of {agent.name} answered {len(created)} norms"
                raise InputError(f"{found}: expected {self.n_created} at most")
            for norm in (PersonalNorm(one["content"], plain(one["utility"]), one["kind"]) for one in created):
                if not _holds(member, norm.content):
                    member = member.accepts(norm, file_norm(norm.content, self.behaviours, agent.prefers.__getitem__))
            follows = frozenset(norm.content for norm in member.qualified)
            _change(event, members, number, member.plans_by(Plan("", follows)))
        return event

    def encounter(self, members: Sequence[Member], observer: int, actor: int, behaviour: Behaviour) -> Event:
        """The observer sees the actor, and one of them may learn from it."""
        event = Event("encounter", behaviour.name)
        observation = self._observed(members[actor], behaviour)
        one, seen = members[observer], (members[observer].agent, observation)
        said = None
        if one.qualified and self._decide("detect_conflict", *seen, one.qualified):
            event.seen.append("conflict")
            if self._decide("decide_to_talk", *seen, one.qualified):
                said = self.ask("talk", None, one.agent, members[actor].agent, observation, one.qualified)
        if said is not None:
            event.seen.append("chat")
            after = self._learns(members[actor], said, "chat", observation, one)
            _change(event, members, actor, after)
        else:
            thought = self.ask("think", None, *seen, one.qualified)
            if thought is not None:
                event.seen.append("thought")
                after = self._learns(one, thought, "thought", observation, one)
                _change(event, members, observer, after)
        return event

    def plan(self, members: Sequence[Member], number: int) -> Event:
        """An agent makes a plan."""
        event, member = Event("plan"), members[number]
        plan = self.ask("plan", None, member.agent, member.qualified)
        if plan is not None:
            unknown = plan.follows.difference(norm.content for norm in member.qualified)
            if unknown:
                found = f"plan of {member.agent.name} follows {min(unknown)!r}"
                raise InputError(f"{found}: expected qualified norms of the agent")
            _change(event, members, number, member.plans_by(plan))
        return event

    def synthesis(self, members: Sequence[Member], number: int) -> Event:
        """An agent whose norms have utilities above the threshold replaces those of each theme by a general one.

        A theme of one norm is passed over, unless rates give the agent norms that are not in its database.
        """
        event, member = Event("synthesis"), members[number]
        agent = member.agent
        if member.qualified and self.rates.synthesises(agent.type, member.database.total_utility):
            least = 1 if getattr(self.rates, f"other_utility_{agent.type}") > 0 else 2
            for theme, contents in self.ask("classify", (), agent, member.qualified):
                if len(contents) >= least:
                    member = self._generalises(member, theme, contents)
            _change(event, members, number, member)
        return event

    def _observed(self, actor: Member, behaviour: Behaviour) -> Observation:
        name = actor.agent.name
        habit = Action("", actor.agent.prefers[behaviour.name], False)
        action = self.ask("act", habit, actor.agent, behaviour, actor.qualified, actor.plan)
        text = f"{name} {behaviour.shows[action.shows]}."
        return Observation(text, name, behaviour.name, action.shows, action.normative)

    def _learns(self, member: Member, text: str, source: str, observation: Observation, author: Member) -> Member:
        """`member` after a text of `author` in which there may be a norm."""
        told = (member.agent, text, source, observation, member.informed)
        information = self.ask("identify", None, *told)
        if information is None:
            return member
        norm = PersonalNorm(information.content, plain(information.utility), information.kind)
        if _holds(member, norm.content):
            return member
        about = file_norm(norm.content, self.behaviours, lambda name: _taken_as(name, source, observation, author))
        if self._check(member, information, member.qualified):
            return member.accepts(norm, about)
        return member.told_of(norm, about)

    def _check(self, member: Member, information: Information, norms: Norms) -> bool:
        """The four steps; the first that fails is the last."""
        known: tuple[Any, ...] = (member.agent, information)
        return (
            self._decide("is_consistent", *known)
            and self._decide("is_unique", *known, norms)
            and self._decide("is_type_right", *known)
            and self._decide("is_conflict_free", *known, norms)
        )

    def _generalises(self, member: Member, theme: str, contents: Sequence[str]) -> Member:
        subset = tuple(member.database.find(content) for content in contents)
        answer = self.ask("abstract", None, member.agent, theme, subset)
        if answer is None:
            return member
        content, kind, weights = answer
        if any(norm.content == content and norm.valid for norm in member.database.norms):
            return member
        after = member.generalises(contents, content, kind, plain(weights))
        utility, text = after.database.find(content).utility, f"{theme}: {' '.join(contents)}"
        information = Information(content, kind, utility, text, "synthesis")
        others = tuple(norm for norm in member.qualified if norm not in subset)
        return after if self._check(member, information, others) else member

    def _decide(self, operation: str, *asked: Any) -> bool:
        return bool(self.ask(operation, False, *asked))


def _change(event: Event, members: Sequence[Member], number: int, after: Member) -> None:
    if after is not members[number] and after != members[number]:
        event.changed[number] = after


def _holds(member: Member, content: str) -> bool:
    return any(norm.content == content for norm in member.qualified)


def _taken_as(behaviour: str, source: str, observation: Observation, author: Member) -> str:
    """The standard for a behaviour that `author` upholds by its words or thoughts, '' if unknown."""
    if behaviour != observation.behaviour:
        return author.upheld(behaviour)
    if source == "thought":
        return observation.shows
    return author.upheld(behaviour) or OPPOSITE[observation.shows]
