"""Names of the release before this one; they warn, and go with the next."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.optimize import bisect

import meanfield
from theory.norms import _model, _operations, _society, _states
from theory.norms._emergence import emergence, emergence_measures
from theory.norms._observables import observables
from theory.norms._society import AGENTS, Behaviour, NormAgent

KEPT = {
    **dict.fromkeys(("STANDARDS", "TYPES", "KINDS"), (_society, "", "the text itself")),
    **dict.fromkeys(("NORM_STATES", "NormState"), (_states, "", "reaction_model(...).states")),
    "CHANNELS": (_model, "", "reaction_model(...).alpha"),
    "OPERATIONS": (_operations, "", "default_operations()"),
    "PersonalNorm": (_society, "", "Behaviour.norm(standard)"),
    "behaviour_of": (_society, "", "BEHAVIOURS[name]"),
    "starting_fractions": (_states, "", "initial_composition(behaviour, agents)"),
    "validate_operations": (_operations, "checked_operations", "reaction_model(operations, ...), which checks them"),
}


def as_ordinary(agents: Iterable[NormAgent]) -> tuple[NormAgent, ...]:
    """The same agents, all of them ordinary."""
    _warn("as_ordinary(agents)", "[dataclasses.replace(agent, type='ordinary') for agent in agents]")
    return tuple(replace(agent, type="ordinary") for agent in _society.agents_of(agents))


def fixed_points(
    behaviour: str | Behaviour,
    *,
    operations: xr.Dataset | None = None,
    agents: Sequence[NormAgent] = AGENTS,
    fractions: _states.Fractions | None = None,
    rates: Any = None,
    **search: Any,
) -> xr.Dataset:
    """The fixed points of `reaction_model` and their observables."""
    new = "meanfield.fixed_points(reaction_model(operations, behaviour), initial=initial_composition(behaviour))"
    _warn("fixed_points(behaviour)", new)
    one = _model.Setting.of(behaviour, operations, agents, fractions, rates)
    points = meanfield.fixed_points(one.model, initial=one.start, **search)
    return points.merge(observables(one.model, points["composition"]))


def entrepreneur_threshold(
    behaviour: str | Behaviour,
    *,
    opposing: float = 0.0,
    agents: Sequence[NormAgent] = AGENTS,
    times: Sequence[float] = (2.0, 100.0),
    **options: Any,
) -> xr.Dataset:
    """The fraction of entrepreneurs for the standard 'for' above which half of all agents hold it at some time."""
    _warn("entrepreneur_threshold(behaviour)", "bisection of emergence(...), as in notebooks/norm_emergence.py")
    likes = _states.starting_fractions(behaviour, [one for one in agents if one.type == "ordinary"])

    def beyond(leading: float, day: float) -> float:
        rest = max(1 - opposing - leading, 0.0)
        mixture = {("ordinary", s): rest * likes["ordinary", s] for s in _society.STANDARDS}
        mixture |= {("entrepreneur", "for"): 1 - opposing - rest, ("entrepreneur", "against"): opposing}
        curves = emergence([behaviour], fractions=mixture, times=np.array([0.0, day]), **options)
        return float(curves["reached"].sel(standard="for").isel(behaviour=0, time=1)) - 0.5

    found = []
    for day in times:
        never, always = beyond(1 - opposing, day) <= 0, beyond(0.0, day) > 0
        found.append(np.nan if never else 0.0 if always else bisect(beyond, 0, 1 - opposing, (day,), xtol=1e-6))
    return xr.Dataset({"threshold": ("time", found)}, {"time": list(times)})


def sensitivity(
    behaviours: Sequence[str] | None = None,
    *,
    operations: xr.Dataset | None = None,
    names: Sequence[str] | None = None,
    step: float = 1e-3,
    **options: Any,
) -> xr.Dataset:
    """Differences of `emergence_measures` of the standard 'for', by a probability, from inside at 0 and 1."""
    _warn("sensitivity(behaviours)", "emergence_measures of two tables, as in notebooks/norm_emergence.py")
    table, found = _operations.checked_operations(operations), dict[str, xr.Dataset]()
    for name in names or table:
        for place in np.ndindex(table[name].shape):
            ends = [min(max(table[name].values[place] + change, 0), 1) for change in (-step, step)]
            measured = []
            for value in ends:
                changed = table.copy(deep=True)
                changed[name].values[place] = value
                curves = emergence(behaviours, operations=changed, **options)
                measured.append(emergence_measures(curves).sel(standard="for", drop=True))
            labels = [str(table[dim].values[k]) for dim, k in zip(table[name].dims, place, strict=True)]
            label = f"{name}[{', '.join(labels)}]" if labels else str(name)
            found[label] = (measured[1] - measured[0]) / (ends[1] - ends[0])
    return xr.concat([*found.values()], dim=pd.Index(list(found), name="parameter"))


def __getattr__(name: str) -> object:
    """A name that is still needed within, which warns when it is looked up."""
    if name not in KEPT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, now, new = KEPT[name]
    _warn(f"theory.norms.{name}", new, 4)
    return getattr(module, now or name)


def _warn(old: str, new: str, stacklevel: int = 3) -> None:
    warnings.warn(f"{old} goes with the next release: use {new}", DeprecationWarning, stacklevel=stacklevel)
