"""Helpers of the tests of norms: tables of operations, curves over time, members in given states, a failing table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import xarray as xr

import meanfield
from meanfield.toolbox import UnparsedError
from paper_figs.norm_society import TableOperations
from paper_figs.norm_society._member import OPPOSITE, Member, PersonalNorm
from paper_figs.norm_society._society import OPERATIONS, Society
from theory import norms
from theory.norms import AGENTS, BEHAVIOURS, NormAgent, NormRates, default_operations
from theory.norms._states import NORM_STATES, NormState

SMOKING, NOISE, _ = BEHAVIOURS.values()
K = len(NORM_STATES)
FAST = NormRates(encounters_per_day=20.0, plans_per_day=6.0, syntheses_per_day=4.0)
DAYS = np.linspace(0, 2, 193)


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


def emergence(
    behaviours: Iterable[str] = tuple(BEHAVIOURS),
    operations: xr.Dataset | None = None,
    start: Any = None,
    rates: NormRates | None = None,
    times: np.ndarray = DAYS,
    agents: Iterable[NormAgent] = AGENTS,
) -> xr.Dataset:
    """Observables of the rate equation over time, by behaviour, from agents or from {(type, preference): fraction}."""
    curves = []
    for name in behaviours:
        model = norms.reaction_model(default_operations() if operations is None else operations, name, rates)
        first = norms.initial_composition(name if start is None else start, tuple(agents))
        solution = meanfield.solve(model, initial=first, times=times)
        curves.append(norms.observables(model, solution["composition"]).assign_coords(behaviour=name))
    return xr.concat(curves, "behaviour")


def first_day(share: xr.DataArray, level: float = 0.7) -> xr.DataArray:
    """When a share that grows reaches the level; NaN if never."""
    return share["time"].where(share >= level).min("time")


def society_of(
    operations: Any, behaviours: Iterable = BEHAVIOURS.values(), rates: NormRates = FAST, agents: Iterable = AGENTS
) -> Society:
    return Society(operations, agents, tuple(behaviours), rates)


def member_at(states: dict[str, NormState], operations: TableOperations) -> Member:
    """One who is in such a state for each of the behaviours; `type` is that of the last."""
    kind = list(states.values())[-1].type
    member = Member(NormAgent("Ann", kind, "", {b: state.preference for b, state in states.items()}))
    for behaviour, state in states.items():
        if state.level == "none":
            continue
        norm = PersonalNorm.of(BEHAVIOURS[behaviour], state.standard)
        # what it has heard earlier must not matter
        member = member.told_of(PersonalNorm.of(BEHAVIOURS[behaviour], OPPOSITE[state.standard]))
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


class Chatty(TableOperations):
    """The table, some of whose agents never give a usable answer to one of the operations."""

    def __init__(self, fails: str, every: int = 3, **options: Any) -> None:
        super().__init__(**options)
        self.fails, self.every = fails, every

    def __call__(self, operation: str, agent: NormAgent, given: Mapping[str, Any], rng: np.random.Generator) -> Any:
        assert operation in OPERATIONS
        if operation == self.fails and crc32(agent.name.encode()) % self.every == 0:
            raise UnparsedError(f"{operation}: no answer in 3 tries could be read")
        return super().__call__(operation, agent, given, rng)
