"""Events of a norm society: agents start, meet, plan and synthesise. Their questions are answered once, and logged.

An encounter is as in `theory.norms.reaction_model`, [003] Section 2:

    the actor acts (act); the observer may find this in conflict with its norms (detect_conflict) and talk about it
    (decide_to_talk, talk); then the actor may learn the norm that they talk about (identify and the check);
    else the observer may have a thought (think) and learn the norm that is in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

import numpy as np

from meanfield import InputError
from meanfield.toolbox import ResumableLog, UnparsedError
from paper_figs.norm_society._member import OPPOSITE, Member, Norms
from theory.norms import Behaviour, NormAgent, NormRates
from theory.toolbox import STANDARDS, PersonalNorm

ANSWERS: dict[str, tuple[type, ...]] = {
    **{"create": (list,), "talk": (str,), "think": (str, NoneType), "identify": (dict, NoneType)},
    **{"plan": (dict,), "act": (dict,), "classify": (list,), "abstract": (list,)},
}
"""Types of answers; those of all other operations are True or False."""


class Questions:
    """Asks the operations, or recalls their answers from before an interruption.

    A line of the log is an event, since random numbers belong to events: [operation, name of the agent, answer] of each
    question, without an answer if none could be used, and the operations' own record of the exchange with a model.
    """

    def __init__(self, operations: Callable[..., Any], on_unparsed: str, log: ResumableLog) -> None:
        self.unparsed: Counter[str] = Counter()  # calls without a usable answer
        self._operations, self._on_unparsed, self._log = operations, on_unparsed, log

    @contextmanager
    def of_event(self, number: int, rng: np.random.Generator) -> Iterator[None]:
        """All questions within belong to event `number`, the start being 0."""
        self._rng, self._given, self._known = rng, [], None
        if number < len(self._log.lines):
            with self._log.answers(number) as line:
                self._known = list(line["answers"])
                yield
                if self._known:
                    raise ValueError(f"it holds {self._known[0]}, expected no more")
            return
        yield
        exchanges = getattr(self._operations, "exchanges", [])
        self._log.append({"answers": self._given, "exchanges": exchanges})
        exchanges.clear()

    def __call__(self, operation: str, no: Any, agent: NormAgent, **given: Any) -> Any:
        """The answer, or `no` if there is no usable one."""
        if self._known is None:
            answered = self._ask(operation, agent, given)
            self._given.append([operation, agent.name, *answered])
        else:
            held = self._known.pop(0) if self._known else None
            if held is None or held[:2] != [operation, agent.name]:
                raise ValueError(f"it holds {held}, expected {operation} of {agent.name}")
            answered = held[2:]
        for answer in answered:
            if not isinstance(answer, types := ANSWERS.get(operation, (bool,))):
                expected = " or ".join(one.__name__ for one in types)
                raise InputError(f"{operation} of {agent.name} answered {answer!r}: expected {expected}")
            return answer
        self.unparsed[operation] += 1
        return no

    def _ask(self, operation: str, agent: NormAgent, given: Mapping[str, Any]) -> list[Any]:
        try:
            return [self._operations(operation, agent, given, self._rng)]
        except UnparsedError:
            if self._on_unparsed == "raise":
                raise
            return []


@dataclass
class Event:
    """An event and its results."""

    what: str  # 'start', 'encounter', 'plan' or 'synthesis'
    behaviour: str = ""  # subject of the encounter
    seen: list[str] = field(default_factory=list)  # some of 'conflict', 'chat' and 'thought'
    changed: dict[int, Member] = field(default_factory=dict)  # who may have changed, by number


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
                leading = {k: one for k, one in enumerate(members) if one.agent.type == "entrepreneur"}
                return Event("start", changed={k: self._start(one) for k, one in leading.items()})
            meeting, planning, _ = self.frequencies
            which = rng.random() * sum(self.frequencies)
            first = int(rng.random() * len(members))
            if which < meeting:
                second = int(rng.random() * (len(members) - 1))
                behaviour = self.behaviours[int(rng.random() * len(self.behaviours))]
                return self._encounter(members, first, second + (second >= first), behaviour)
            if which < meeting + planning:
                return Event("plan", changed={first: self._plan(members[first])})
            return Event("synthesis", changed={first: self._synthesis(members[first])})

    def _start(self, member: Member) -> Member:
        """An entrepreneur creates its norms and keeps to them."""
        created = self.ask("create", (), member.agent, n=self.n_created)
        if len(created) > self.n_created:
            found = f"create of {member.agent.name} answered {len(created)} norms"
            raise InputError(f"{found}: expected {self.n_created} at most")
        for one in created:
            norm = self._norm(one, member.agent.prefers.__getitem__)
            member = member if member.holds(norm) else member.accepts(norm)
        return member.plans("", {norm.content for norm in member.qualified})

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
            event.changed[actor] = self._learns(other, said, "chat", seen, one)
        elif (thought := self.ask("think", None, one.agent, **seen, norms=one.qualified)) is not None:
            event.seen.append("thought")
            event.changed[observer] = self._learns(one, thought, "thought", seen, one)
        return event

    def _acts(self, actor: Member, behaviour: Behaviour) -> Mapping[str, Any]:
        habit = {"text": "", "shows": actor.agent.prefers[behaviour.name], "normative": False}
        plan = {"plan": actor.plan, "follows": actor.follows}
        return self.ask("act", habit, actor.agent, behaviour=behaviour, norms=actor.qualified, **plan)

    def _plan(self, member: Member) -> Member:
        plan = self.ask("plan", None, member.agent, norms=member.qualified)
        return member if plan is None else member.plans(plan["text"], plan["follows"])

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
        if member.holds(norm):
            return member
        return member.accepts(norm) if self._passes(member, norm, text, member.qualified) else member.told_of(norm)

    def _passes(self, member: Member, norm: PersonalNorm, text: str, norms: Norms) -> bool:
        """The four steps of the check; the first that fails is the last."""
        of = {"content": norm.content, "kind": norm.kind}
        given = {"is_consistent": {"text": text}, "is_unique": {"norms": norms}, "is_type_right": {}}
        given["is_conflict_free"] = {"norms": norms}
        return all(self.ask(step, False, member.agent, **of, **more) for step, more in given.items())

    def _generalises(self, member: Member, theme: str, contents: Sequence[str]) -> Member:
        subset = member.among(contents)
        answer = self.ask("abstract", None, member.agent, theme=theme, norms=subset)
        if answer is None or any(norm.content == answer[0] and norm.state != "informed" for norm in member.norms):
            return member
        after = member.generalises(contents, *answer)
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
        if not about:
            mentioned = (one.name for one in self.behaviours if _mentions(content, one))
            about = tuple((name, standard) for name in mentioned if (standard := taken_as(name)))
        return PersonalNorm(content, found["utility"], found["kind"], about=about)


def _mentions(content: str, behaviour: Behaviour) -> bool:
    pattern = behaviour.mentions or rf"\b{re.escape(behaviour.name)}\b"
    return re.search(pattern, content, re.IGNORECASE) is not None


def _taken_as(behaviour: str, source: str, seen: Mapping[str, Any], author: Member) -> str:
    """The standard for a behaviour that `author` upholds by its words or thoughts, '' if unknown."""
    if behaviour != seen["behaviour"]:
        return author.upheld(behaviour)
    if source == "thought":
        return seen["shows"]
    return author.upheld(behaviour) or OPPOSITE[seen["shows"]]
