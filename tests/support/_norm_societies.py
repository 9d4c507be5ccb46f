"""Helpers of the tests of norms: tables of operations, and curves over time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

import meanfield
from theory import norms
from theory.norms import AGENTS, BEHAVIOURS, NormAgent, NormRates, default_operations

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
