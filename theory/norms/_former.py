"""Names of the release before this one; they warn, and go with the next."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import xarray as xr

import meanfield
from theory.norms import _model, _operations, _society, _states
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


def __getattr__(name: str) -> object:
    """A name that is still needed within, which warns when it is looked up."""
    if name not in KEPT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, now, new = KEPT[name]
    _warn(f"theory.norms.{name}", new, 4)
    return getattr(module, now or name)


def _warn(old: str, new: str, stacklevel: int = 3) -> None:
    warnings.warn(f"{old} goes with the next release: use {new}", DeprecationWarning, stacklevel=stacklevel)
