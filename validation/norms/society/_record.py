"""What is recorded of a norm society, event by event."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import numpy as np
import xarray as xr

from theory.norms import STANDARDS, Behaviour, SocietyOperations
from validation.norms.society._events import Event
from validation.norms.society._json import member_to_dict
from validation.norms.society._member import Member

SEEN = {"conflicts": "conflict", "thoughts": "thought", "chats": "chat"}
SHARES = {
    "accepted": "share of agents with the standard among their qualified norms, not as part of an abstract one",
    "complying": "share of agents that have planned by the standard, or hold it as part of an abstract norm",
    "reached": "share of agents that hold the standard, as such or as part of an abstract norm",
    "informed": "share of agents that only know of the standard",
}
OPERATIONS = tuple(name for name in vars(SocietyOperations) if not name.startswith("_"))


class Record:
    """The members of a society as they change, and what is to be told of them.

    Attributes
    ----------
    members
        As they are after the last event.
    """

    def __init__(self, members: Sequence[Member], behaviours: Sequence[Behaviour]) -> None:
        self.members = list(members)
        self._names = [one.name for one in behaviours]
        self._standards = [(name, standard) for name in self._names for standard in STANDARDS]
        self._counted = [(what, name) for what in SEEN.values() for name in self._names]
        self._seen = [0] * len(self._counted)
        self._shares = sum(map(self._member_row, self.members))
        self._rows: list[tuple[list[int], np.ndarray]] = []
        self._what: list[str] = []
        self._unparsed: Counter[str] = Counter()

    def add(self, event: Event) -> None:
        """Apply an event."""
        for number, after in event.changed.items():
            self._shares = self._shares + self._member_row(after) - self._member_row(self.members[number])
            self.members[number] = after
        if event.seen:
            self._seen = [
                count + (what in event.seen and name == event.behaviour)
                for (what, name), count in zip(self._counted, self._seen, strict=True)
            ]
        self._rows.append((self._seen, self._shares))
        self._what.append(event.what)
        self._unparsed.update(event.unparsed)

    def dataset(self, events_per_day: float) -> xr.Dataset:
        """All of it as variables."""
        n_events = len(self._rows)
        seen = np.array([row[0] for row in self._rows]).reshape(n_events, len(SEEN), -1)
        shares = np.array([row[1] for row in self._rows]).reshape(n_events, len(SHARES), -1, len(STANDARDS))
        shares = shares / len(self.members)
        by_behaviour, by_standard = ("event", "behaviour"), ("event", "behaviour", "standard")
        counts = {name: (by_behaviour, seen[:, k], _label(f"{name} so far")) for k, name in enumerate(SEEN)}
        parts = {name: (by_standard, shares[:, k], _label(text)) for k, (name, text) in enumerate(SHARES.items())}
        failed = [self._unparsed[name] for name in OPERATIONS]
        time = np.arange(n_events) / events_per_day
        result = xr.Dataset(
            counts | parts | {"unparsed": ("operation", failed, _label("operations without a usable answer"))},
            coords={
                "event": np.arange(n_events),
                "behaviour": self._names,
                "standard": list(STANDARDS),
                "operation": list(OPERATIONS),
                "what": ("event", np.array(self._what, dtype=str), {"long_name": "what happened"}),
                "time": ("event", time, _label("time, on average", "day")),
            },
        )
        databases = {member.agent.name: member_to_dict(member) for member in self.members}
        return result.assign_attrs(databases=json.dumps(databases, ensure_ascii=False))

    def _member_row(self, member: Member) -> np.ndarray:
        """For each share and standard whether the member counts."""
        levels = [member.held.get(standard, "") for standard in self._standards]
        told = [member.informed_last.get(behaviour) == standard for behaviour, standard in self._standards]
        accepted = [level in ("qualified", "complying") for level in levels]
        complying = [level in ("complying", "superseded") for level in levels]
        return np.array([accepted, complying, [bool(level) for level in levels], told], dtype=np.int64)


def _label(text: str, units: str = "1") -> dict[str, str]:
    return {"long_name": text, "units": units}
