"""What the tests of norm societies share: tables and rates, members in given states, a talkative table, logs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import xarray as xr

from meanfield.toolbox import UnparsedError
from theory.norms import AGENTS, BEHAVIOURS, NORM_STATES, NormAgent, NormRates, NormState, default_operations
from theory.norms._contract import Plan
from validation.norms._table_operations import TableOperations
from validation.norms.society._events import Rules
from validation.norms.society._json import member_to_dict
from validation.norms.society._member import OPPOSITE, Member
from validation.norms.society._questions import Questions
from validation.norms.society._simulate import Streams

SMOKING, NOISE, _ = BEHAVIOURS.values()
K = len(NORM_STATES)
FAST = NormRates(encounters_per_day=20.0, plans_per_day=6.0, syntheses_per_day=4.0)
ASKED = (
    "create", "detect_conflict", "decide_to_talk", "talk", "think", "identify", "is_consistent", "is_unique",
    "is_type_right", "is_conflict_free", "plan", "act", "classify", "abstract",
)  # fmt: skip


def table(base: xr.Dataset | None = None, **changes: Any) -> xr.Dataset:
    changed = (default_operations() if base is None else base).copy(deep=True)
    for name, value in changes.items():
        changed[name] = changed[name].dims, np.broadcast_to(np.asarray(value, float), changed[name].shape).copy()
    return changed


def member_at(states: dict[str, NormState], operations: TableOperations, name: str = "Ann") -> Member:
    """One who is in such a state for each of the behaviours; `type` is that of the last."""
    kind = list(states.values())[-1].type
    member = Member(NormAgent(name, kind, "", {b: state.preference for b, state in states.items()}))
    for behaviour, state in states.items():
        if state.level == "none":
            continue
        norm, about = BEHAVIOURS[behaviour].norm(state.standard), ((behaviour, state.standard),)
        before = OPPOSITE[state.standard]  # what it has heard earlier must not matter
        member = member.told_of(BEHAVIOURS[behaviour].norm(before), ((behaviour, before),))
        if state.level == "informed":
            member = member.told_of(norm, about)
            continue
        member = member.accepts(norm, about)
        if state.level == "complying":
            member = member.plans_by(Plan("", frozenset({norm.content})))
        if state.level == "superseded":
            content, kind, weights = operations.abstract(member.agent, "", (norm,), np.random.default_rng())
            member = member.generalises([norm.content], content, kind, weights)
    return member


def lines_of(log: Path) -> list[dict]:
    return [json.loads(line) for line in log.read_text().splitlines()[1:]]


def databases_over_time(operations: Any, encounters: int, seed: int, rates: NormRates) -> Iterator[tuple]:
    """Each change of a member of a society: (event, name, what it held before, and after), as `simulate_society`."""
    rules = Rules(Questions(operations), tuple(BEHAVIOURS.values()), rates, 5)
    members, streams, met = [Member(agent) for agent in AGENTS], Streams(seed), 0
    for number in count():
        event = rules.play(members, number, streams.at(number))
        for who, after in event.changed.items():
            yield event, AGENTS[who].name, member_to_dict(members[who]), member_to_dict(after)
            members[who] = after
        met += event.what == "encounter"
        if met == encounters:
            return


class Chatty(TableOperations):
    """The table, with exchanges, a count of what was asked, some agents who fail, and an end after so many answers."""

    def __init__(self, fails: str = "", every: int = 3, lives: int = 10**9, **options: Any) -> None:
        super().__init__(**options)
        self.lives = lives
        self.exchanges: list[dict] = [{"operation": "asked before"}]
        self.asked: list[str] = []
        for name in ASKED:
            setattr(self, name, self._telling(name, name == fails, every))

    def _telling(self, name: str, fails: bool, every: int) -> Callable:
        answered = getattr(super(), name)

        def ask(agent: NormAgent, *asked: Any) -> Any:
            if len(self.asked) == self.lives:
                raise KeyboardInterrupt
            self.asked.append(name)
            self.exchanges.append({"operation": name, "agent": agent.name, "answer": "…"})
            if fails and crc32(agent.name.encode()) % every == 0:
                raise UnparsedError(f"{name}: no answer in 3 tries could be read")
            return answered(agent, *asked)

        return ask
