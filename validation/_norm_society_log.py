"""The log of a norm society: one line an event, with all that was asked and answered, and who changed to what."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from meanfield import InputError
from meanfield._resumable_log import ResumableLog
from theory.norms import NormAgent, NormDatabase, PersonalNorm
from theory.norms._contract import Plan
from validation._norm_society_events import Event
from validation._norm_society_member import Member

FORMAT = 1


class EventLog:
    """A `ResumableLog` with one line an event; its parameters and errors are those of that.

    Attributes
    ----------
    events
        Those that the file held, the start among them, without what was asked and exchanged.
    """

    def __init__(self, path: str | os.PathLike[str] | None, key: dict[str, Any], agents: Sequence[NormAgent]) -> None:
        self._agents = agents
        self._log = ResumableLog(path, {"norm_society": FORMAT, **key}, "norm society", _numbered)
        try:
            self.events = [self._event(line) for line in self._log.content]
        except (ValueError, KeyError, TypeError):
            raise InputError(f"log = {path}: it is damaged, or no log of a norm society; take a new file") from None

    def append(self, number: int, event: Event) -> None:
        """Add event number `number`, the start being 0."""
        if self._log.path is None:
            return
        changed = {self._agents[who].name: member_to_dict(member) for who, member in event.changed.items()}
        asked = [[operation, agent, _plain(answer)] for operation, agent, answer in event.asked]
        who = [self._agents[one].name for one in event.agents]
        plain = {name: getattr(event, name) for name in ("what", "behaviour", "seen", "unparsed", "exchanges")}
        self._log.append({"event": number, **plain, "agents": who, "asked": asked, "changed": changed})

    def _event(self, line: dict[str, Any]) -> Event:
        numbers = {agent.name: number for number, agent in enumerate(self._agents)}
        changed = {
            numbers[name]: _member(self._agents[numbers[name]], row) for name, row in dict(line["changed"]).items()
        }
        agents = tuple(numbers[name] for name in line["agents"])
        return Event(line["what"], agents, line["behaviour"], line["seen"], unparsed=line["unparsed"], changed=changed)


def _numbered(lines: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    if [line["event"] for line in lines] != list(range(len(lines))):
        raise ValueError("events are missing")
    return lines


def member_to_dict(member: Member) -> dict[str, Any]:
    """What a member holds, of parts that JSON has."""
    norms = [
        {**asdict(norm), "about": [list(one) for one in member.about[norm.content]]}
        | ({"parts": list(member.parts[norm.content])} if norm.content in member.parts else {})
        for norm in member.database.norms
    ]
    return {"norms": norms, "plan": _plain(member.plan)}


def _member(agent: NormAgent, row: dict[str, Any]) -> Member:
    norms, about, parts = [], {}, {}
    for norm in row["norms"]:
        content = norm["content"]
        norms.append(PersonalNorm(content, norm["utility"], norm["kind"], norm["activated"], norm["valid"]))
        about[content] = tuple((behaviour, standard) for behaviour, standard in norm["about"])
        if "parts" in norm:
            parts[content] = tuple(norm["parts"])
    plan = Plan(row["plan"]["text"], frozenset(row["plan"]["follows"]))
    return Member(agent, NormDatabase(tuple(norms)), plan, about, parts)


def _plain(answer: Any) -> Any:
    """The same of parts that JSON has."""
    if is_dataclass(answer) and not isinstance(answer, type):
        return {name: _plain(value) for name, value in vars(answer).items()}
    if isinstance(answer, (frozenset, set)):
        return sorted(answer)
    if isinstance(answer, dict):
        return {name: _plain(value) for name, value in answer.items()}
    if isinstance(answer, (list, tuple)):
        return [_plain(value) for value in answer]
    return answer
