"""The record of a norm society, event by event."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

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
    """The members of a society as they change, and its observables.

    Attributes
    ----------
    members
        As they are after the last event.
    """

    def __init__(self, members: Sequence[Member], behaviours: Sequence[Behaviour]) -> None:
        self.members = list(members)
        self._names = [one.name for one in behaviours]
        self._standards = [(name, standard) for name in self._names for standard in STANDARDS]
        self._seen = np.zeros((len(SEEN), len(self._names)), dtype=np.int64)
        self._shares = sum(map(self._member_row, self.members))
        self._rows: list[tuple[np.ndarray, np.ndarray]] = []
        self._what: list[str] = []

    def add(self, event: Event) -> None:
        """Apply an event."""
        for number, after in event.changed.items():
            self._shares = self._shares + self._member_row(after) - self._member_row(self.members[number])
            self.members[number] = after
        if event.seen:
            seen = [what in event.seen for what in SEEN.values()]
            self._seen = self._seen + np.outer(seen, [name == event.behaviour for name in self._names])
        self._rows.append((self._seen, self._shares))
        self._what.append(event.what)

    def dataset(self, events_per_day: float, unparsed: Mapping[str, int]) -> xr.Dataset:
        """The observables as variables, and how often each operation had no usable answer."""
        seen, shares = map(np.array, zip(*self._rows, strict=True))
        shares = shares.reshape(len(seen), len(SHARES), -1, len(STANDARDS)) / len(self.members)
        by_behaviour, by_standard = ("event", "behaviour"), ("event", "behaviour", "standard")
        counts = {name: (by_behaviour, seen[:, k], _label(f"{name} so far")) for k, name in enumerate(SEEN)}
        parts = {name: (by_standard, shares[:, k], _label(text)) for k, (name, text) in enumerate(SHARES.items())}
        failed = [unparsed.get(name, 0) for name in OPERATIONS]
        time = np.arange(len(seen)) / events_per_day
        result = xr.Dataset(
            counts | parts | {"unparsed": ("operation", failed, _label("operations without a usable answer"))},
            coords={
                "event": np.arange(len(seen)),
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
