"""Helpers of the tests of norm societies: tables and rates, members in given states, a talkative table, logs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import xarray as xr

from meanfield.toolbox import ResumableLog, UnparsedError
from paper_figs.norm_society import TableOperations
from paper_figs.norm_society._events import Questions, Rules
from paper_figs.norm_society._member import OPPOSITE, Member
from paper_figs.norm_society._society import OPERATIONS, stream
from theory.norms import AGENTS, BEHAVIOURS, NormAgent, NormRates, default_operations
from theory.norms._states import NORM_STATES, NormState

SMOKING, NOISE, _ = BEHAVIOURS.values()
K = len(NORM_STATES)
FAST = NormRates(encounters_per_day=20.0, plans_per_day=6.0, syntheses_per_day=4.0)


def ordinary(agents: Iterable[NormAgent]) -> tuple[NormAgent, ...]:
    """A society without entrepreneurs."""
    return tuple(replace(agent, type="ordinary") for agent in agents)


def table(base: xr.Dataset | None = None, **changes: Any) -> xr.Dataset:
    changed = (default_operations() if base is None else base).copy(deep=True)
    for name, value in changes.items():
        changed[name] = changed[name].dims, np.broadcast_to(np.asarray(value, float), changed[name].shape).copy()
    return changed


def random_table(seed: int, **changes: Any) -> xr.Dataset:
    rng, base = np.random.default_rng(seed), default_operations()
    return table(base, **{str(name): rng.uniform(0.05, 0.95, base[name].shape) for name in base} | changes)


def rules_of(operations: Any, behaviours: Iterable = BEHAVIOURS.values(), rates: NormRates = FAST) -> Rules:
    asked = Questions(operations, "raise", ResumableLog(None, {}, "norm society"))
    return Rules(asked, tuple(behaviours), rates, 5)


def member_at(states: dict[str, NormState], operations: TableOperations) -> Member:
    """One who is in such a state for each of the behaviours; `type` is that of the last."""
    kind = list(states.values())[-1].type
    member = Member(NormAgent("Ann", kind, "", {b: state.preference for b, state in states.items()}))
    for behaviour, state in states.items():
        if state.level == "none":
            continue
        norm = BEHAVIOURS[behaviour].norm(state.standard)
        # what it has heard earlier must not matter
        member = member.told_of(BEHAVIOURS[behaviour].norm(OPPOSITE[state.standard]))
        if state.level == "informed":
            member = member.told_of(norm)
            continue
        member = member.accepts(norm)
        if state.level == "complying":
            member = member.plans("", [norm.content])
        if state.level == "superseded":
            given = {"theme": "", "norms": (norm,)}
            general = operations("abstract", member.agent, given, np.random.default_rng())
            member = member.generalises([norm.content], *general)
    return member


def lines_of(log: Path) -> list[dict]:
    return [json.loads(line) for line in log.read_text().splitlines()[1:]]


def databases_over_time(operations: Any, encounters: int, seed: int, rates: NormRates) -> Iterator[tuple]:
    """Each change of a member of a society: (event, name, what it held before, and after), as `simulate_society`."""
    rules = rules_of(operations, rates=rates)
    members, met = [Member(agent) for agent in AGENTS], 0
    for number in count():
        event = rules.play(members, number, stream(seed, number))
        for who, after in event.changed.items():
            yield event, AGENTS[who].name, members[who].as_dict(), after.as_dict()
            members[who] = after
        met += event.what == "encounter"
        if met == encounters:
            return


class Chatty(TableOperations):
    """The table, with exchanges, a count of what was asked, some agents who fail, and an end after so many answers."""

    def __init__(self, fails: str = "", every: int = 3, lives: int = 10**9, **options: Any) -> None:
        super().__init__(**options)
        self.fails, self.every, self.lives = fails, every, lives
        self.exchanges: list[dict] = [{"operation": "asked before"}]
        self.asked: list[str] = []

    def __call__(self, operation: str, agent: NormAgent, given: Mapping[str, Any], rng: np.random.Generator) -> Any:
        assert operation in OPERATIONS
        if len(self.asked) == self.lives:
            raise KeyboardInterrupt
        self.asked.append(operation)
        self.exchanges.append({"operation": operation, "agent": agent.name, "answer": "…"})
        if operation == self.fails and crc32(agent.name.encode()) % self.every == 0:
            raise UnparsedError(f"{operation}: no answer in 3 tries could be read")
        return super().__call__(operation, agent, given, rng)
