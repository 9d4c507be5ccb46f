"""What happens in a norm society: agents start, meet, plan and synthesise.

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

from meanfield import InputError, UnparsedError
from theory.norms import Action, Behaviour, Information, NormRates, Observation, PersonalNorm, Plan, SocietyOperations
from theory.toolbox import Norms
from validation.norms.society._answers import check_answer
from validation.norms.society._filing import file_norm
from validation.norms.society._json import plain
from validation.norms.society._member import OPPOSITE, Member


@dataclass
class Event:
    """What happened.

    Attributes
    ----------
    what
        'start', 'encounter', 'plan' or 'synthesis'.
    agents
        Numbers of those who took part: observer and actor; who planned or synthesised; none at the start.
    behaviour
        What the encounter was about, else ''.
    seen
        Which of 'conflict', 'chat' and 'thought' there were.
    asked
        Operation, name of the agent, and answer, one after the other.
    unparsed
        Operations that had no usable answer.
    changed
        {number of the agent: what it is afterwards}, of those who changed.
    exchanges
        What the operations object kept of its conversation with a model.
    """

    what: str
    agents: tuple[int, ...] = ()
    behaviour: str = ""
    seen: list[str] = field(default_factory=list)
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    unparsed: list[str] = field(default_factory=list)
    changed: dict[int, Member] = field(default_factory=dict)
    exchanges: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Rules:
    """All that says how events go, beside who takes part."""

    operations: SocietyOperations
    behaviours: tuple[Behaviour, ...]
    rates: NormRates
    n_created: int
    on_unparsed: str

    def start(self, members: Sequence[Member], rng: np.random.Generator) -> Event:
        """Entrepreneurs create their norms and keep to them."""
        event = Event("start")
        for number, member in enumerate(members):
            if member.agent.type != "entrepreneur":
                continue
            agent = member.agent
            created = self._ask(event, "create", (), agent, self.n_created, rng)
            if len(created) > self.n_created:
                raise InputError(
                    f"create of {agent.name} answered {len(created)} norms: expected {self.n_created} at most"
                )
            for norm in (PersonalNorm(one["content"], plain(one["utility"]), one["kind"]) for one in created):
                if not _holds(member, norm.content):
                    member = member.accepts(norm, file_norm(norm.content, self.behaviours, agent.prefers.__getitem__))
            follows = frozenset(norm.content for norm in member.qualified)
            _change(event, members, number, member.plans_by(Plan("", follows)))
        return self._ended(event)

    def encounter(
        self, members: Sequence[Member], observer: int, actor: int, behaviour: Behaviour, rng: np.random.Generator
    ) -> Event:
        """The observer sees the actor, and one of them may learn from it."""
        event = Event("encounter", (observer, actor), behaviour.name)
        observation = self._observed(event, members[actor], behaviour, rng)
        one, seen = members[observer], (members[observer].agent, observation)
        said = None
        if one.qualified and self._decide(event, "detect_conflict", *seen, one.qualified, rng):
            event.seen.append("conflict")
            if self._decide(event, "decide_to_talk", *seen, one.qualified, rng):
                said = self._ask(event, "talk", None, one.agent, members[actor].agent, observation, one.qualified, rng)
        if said is not None:
            event.seen.append("chat")
            after = self._learns(event, members[actor], said, "chat", observation, one, rng)
            _change(event, members, actor, after)
        else:
            thought = self._ask(event, "think", None, *seen, one.qualified, rng)
            if thought is not None:
                event.seen.append("thought")
                after = self._learns(event, one, thought, "thought", observation, one, rng)
                _change(event, members, observer, after)
        return self._ended(event)

    def plan(self, members: Sequence[Member], number: int, rng: np.random.Generator) -> Event:
        """An agent makes a plan."""
        event, member = Event("plan", (number,)), members[number]
        plan = self._ask(event, "plan", None, member.agent, member.qualified, rng)
        if plan is not None:
            unknown = plan.follows.difference(norm.content for norm in member.qualified)
            if unknown:
                raise InputError(
                    f"plan of {member.agent.name} follows {min(unknown)!r}: expected qualified norms of the agent"
                )
            _change(event, members, number, member.plans_by(plan))
        return self._ended(event)

    def synthesis(self, members: Sequence[Member], number: int, rng: np.random.Generator) -> Event:
        """An agent whose norms have utilities above the threshold replaces those of each theme by a general one.

        A theme of one norm is passed over, unless the agent is taken to have norms that are not in its database.
        """
        event, member = Event("synthesis", (number,)), members[number]
        agent = member.agent
        if member.qualified and self.rates.synthesises(agent.type, member.database.total_utility):
            least = 1 if getattr(self.rates, f"other_utility_{agent.type}") > 0 else 2
            for theme, contents in self._ask(event, "classify", (), agent, member.qualified, rng):
                if len(contents) >= least:
                    member = self._generalises(event, member, theme, contents, rng)
            _change(event, members, number, member)
        return self._ended(event)

    def _observed(self, event: Event, actor: Member, behaviour: Behaviour, rng: np.random.Generator) -> Observation:
        name = actor.agent.name
        habit = Action("", actor.agent.prefers[behaviour.name], False)
        action = self._ask(event, "act", habit, actor.agent, behaviour, actor.qualified, actor.plan, rng)
        text = f"{name} {behaviour.shows[action.shows]}."
        return Observation(text, name, behaviour.name, action.shows, action.normative)

    def _learns(
        self,
        event: Event,
        member: Member,
        text: str,
        source: str,
        observation: Observation,
        author: Member,
        rng: np.random.Generator,
    ) -> Member:
        """What becomes of `member` with a text of `author` in which there may be a norm."""
        told = (member.agent, text, source, observation, member.informed)
        information = self._ask(event, "identify", None, *told, rng)
        if information is None:
            return member
        norm = PersonalNorm(information.content, plain(information.utility), information.kind)
        if _holds(member, norm.content):
            return member
        about = file_norm(norm.content, self.behaviours, lambda name: _taken_as(name, source, observation, author))
        if self._check(event, member, information, member.qualified, rng):
            return member.accepts(norm, about)
        return member.told_of(norm, about)

    def _check(
        self, event: Event, member: Member, information: Information, norms: Norms, rng: np.random.Generator
    ) -> bool:
        """The four steps; the first that fails is the last."""
        known: tuple[Any, ...] = (member.agent, information)
        return (
            self._decide(event, "is_consistent", *known, rng)
            and self._decide(event, "is_unique", *known, norms, rng)
            and self._decide(event, "is_type_right", *known, rng)
            and self._decide(event, "is_conflict_free", *known, norms, rng)
        )

    def _generalises(
        self, event: Event, member: Member, theme: str, contents: Sequence[str], rng: np.random.Generator
    ) -> Member:
        subset = tuple(member.database.find(content) for content in contents)
        answer = self._ask(event, "abstract", None, member.agent, theme, subset, rng)
        if answer is None:
            return member
        content, kind, weights = answer
        if any(norm.content == content and norm.valid for norm in member.database.norms):
            return member
        after = member.generalises(contents, content, kind, plain(weights))
        utility, text = after.database.find(content).utility, f"{theme}: {' '.join(contents)}"
        information = Information(content, kind, utility, text, "synthesis")
        others = tuple(norm for norm in member.qualified if norm not in subset)
        return after if self._check(event, member, information, others, rng) else member

    def _decide(self, event: Event, operation: str, *asked: Any) -> bool:
        return bool(self._ask(event, operation, False, *asked))

    def _ask(self, event: Event, operation: str, no: Any, agent: Any, *asked: Any) -> Any:
        """The answer of the operation, or `no` where it has none that can be used."""
        try:
            answer = getattr(self.operations, operation)(agent, *asked)
            check_answer(operation, agent.name, answer)
        except UnparsedError:
            if self.on_unparsed == "raise":
                raise
            event.unparsed.append(operation)
            answer = no
        event.asked.append((operation, agent.name, answer))
        return answer

    def _ended(self, event: Event) -> Event:
        exchanges = getattr(self.operations, "exchanges", None)
        if exchanges:
            event.exchanges = list(exchanges)
            exchanges.clear()
        return event


def _change(event: Event, members: Sequence[Member], number: int, after: Member) -> None:
    if after is not members[number] and after != members[number]:
        event.changed[number] = after


def _holds(member: Member, content: str) -> bool:
    return any(norm.content == content for norm in member.qualified)


def _taken_as(behaviour: str, source: str, observation: Observation, author: Member) -> str:
    """The standard for a behaviour that is upheld by what `author` says or thinks, '' where that can't be told."""
    if behaviour != observation.behaviour:
        return author.upheld(behaviour)
    if source == "thought":
        return observation.shows
    return author.upheld(behaviour) or OPPOSITE[observation.shows]
