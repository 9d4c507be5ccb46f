"""The log of a norm society: one line an event, with all that was asked and answered, and who changed to what."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from meanfield.toolbox import ResumableLog
from theory.norms import NormAgent
from validation.norms.society._events import Event
from validation.norms.society._json import answer_to_json, member_from_dict, member_to_dict, names_of, plain
from validation.norms.society._record import OPERATIONS, SEEN

FORMAT = 1
TAKE_PART = {"start": 0, "encounter": 2, "plan": 1, "synthesis": 1}


class EventLog:
    """A `ResumableLog` with one line an event; its parameters and errors are those of that.

    Attributes
    ----------
    events
        Those that the file held, the start among them, without what was asked and exchanged.
    """

    def __init__(self, path: str | os.PathLike[str] | None, key: dict[str, Any], agents: Sequence[NormAgent]) -> None:
        self._agents, self._behaviours = agents, key["behaviours"]
        self._log = ResumableLog(path, {"norm_society": FORMAT, **key}, "norm society", self._read)
        self.events = self._log.content

    def append(self, number: int, event: Event) -> None:
        """Add event number `number`, the start being 0."""
        if self._log.path is None:
            return
        changed = {self._agents[who].name: member_to_dict(member) for who, member in event.changed.items()}
        asked = [[operation, agent, answer_to_json(operation, answer)] for operation, agent, answer in event.asked]
        who = [self._agents[one].name for one in event.agents]
        same = {name: plain(getattr(event, name)) for name in ("what", "behaviour", "seen", "unparsed", "exchanges")}
        self._log.append({"event": number, **same, "agents": who, "asked": asked, "changed": changed})

    def _read(self, lines: Sequence[dict[str, Any]]) -> list[Event]:
        if [line["event"] for line in lines] != list(range(len(lines))):
            raise ValueError("events are missing")
        return [self._event(line) for line in lines]

    def _event(self, line: dict[str, Any]) -> Event:
        what, numbers = line["what"], {agent.name: number for number, agent in enumerate(self._agents)}
        agents = tuple(numbers[name] for name in line["agents"])
        if (what == "start") != (line["event"] == 0) or len(set(agents)) != TAKE_PART[what]:
            raise ValueError(f"{what!r} of {agents}: expected a start, and then events of so many")
        (behaviour,) = names_of([line["behaviour"]], self._behaviours if what == "encounter" else [""])
        seen, unparsed = names_of(line["seen"], SEEN.values()), names_of(line["unparsed"], OPERATIONS)
        changed = {
            numbers[name]: member_from_dict(self._agents[numbers[name]], row, self._behaviours)
            for name, row in dict(line["changed"]).items()
        }
        return Event(what, agents, behaviour, seen, unparsed=unparsed, changed=changed)
