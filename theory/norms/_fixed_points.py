"""Where norms can come to rest: the fixed points of the reaction model, and which norm holds in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

import meanfield
from meanfield.toolbox import real_number, stamp
from theory.norms._model import reaction_model
from theory.norms._observables import observables
from theory.norms._operations import default_operations, operations_sha256
from theory.norms._rates import NormRates
from theory.norms._society import AGENTS, STANDARDS, Behaviour, NormAgent, behaviour_of
from theory.norms._start import ROUNDING, fractions_text, initial_composition, mixture_of
from theory.norms._states import NormState


def fixed_points(
    behaviour: str | Behaviour,
    *,
    operations: xr.Dataset | None = None,
    agents: Sequence[NormAgent] = AGENTS,
    fractions: Mapping[tuple[str, str], float] | None = None,
    rates: NormRates | None = None,
    level: float = 0.95,
    **search: Any,
) -> xr.Dataset:
    """The fixed points of `reaction_model` with given fractions of types and preferences, and their stability.

    Beside its random starts the search follows solutions from the start of `emergence`, and from everybody complying
    with the one standard or the other. The fractions fix the kinds of agents and not who holds a norm: since no agent
    forgets one, a society with entrepreneurs never comes to a fixed point without norms. That nobody has a norm is a
    fixed point if norms never begin by habit (`identify_habit` = 0), one of a continuum over who is informed; it is
    unstable if those who learn a norm can pass it on to each other.

    Parameters
    ----------
    behaviour, operations, agents, fractions, rates
        As for `emergence`.
    level
        Share from which on a norm counts as held by all, above 1/2, up to 1.
    search
        `starts`, `seed` and `progress` of `meanfield.fixed_points`.

    Returns
    -------
    What `meanfield.fixed_points` returns, time in days, with what `observables` tells of each fixed point
    and `regime` (fixed_point): 'for' or 'against' where the share that holds this standard (`reached`) is at least
    `level`, 'no norm' where the share that holds either is at most 1 - `level`, 'coexistence' where each standard is
    held by more than 1 - `level`, and 'partial' where one is, and not by all. Of a continuum it is that of one point.

    Raises
    ------
    InputError
        If an argument is not as described.

    See Also
    --------
    emergence : how they are reached
    entrepreneur_threshold : which is reached
    """
    real_number("level", level, above=0.5, most=1)
    one = behaviour_of(behaviour)
    operations = default_operations() if operations is None else operations
    mixture = mixture_of(one, agents, fractions)
    model = reaction_model(operations, one, rates)
    starts = xr.concat([initial_composition(mixture), *(_all_comply(mixture, s) for s in STANDARDS)], dim="start")
    points = meanfield.fixed_points(model, initial=starts, **search)
    seen = observables(model, points["composition"])
    regime = ("fixed_point", _regimes(seen["reached"], level - ROUNDING), {"long_name": "which norm holds"})
    return stamp(
        points.merge(seen).assign(regime=regime).assign_coords(behaviour=one.name, kind=one.kind),
        "norm_fixed_points",
        level=level,
        operations_sha256=operations_sha256(operations),
        fractions=fractions_text(mixture),
        **vars(rates or NormRates()),
    )


def _all_comply(mixture: Mapping[tuple[str, str], float], standard: str) -> xr.DataArray:
    x = xr.zeros_like(initial_composition(mixture))
    for key, fraction in mixture.items():
        x.loc[NormState(*key, "complying", standard).label] = fraction
    return x


def _regimes(reached: xr.DataArray, level: float) -> np.ndarray:
    total, least = reached.sum("standard").values, reached.min("standard").values
    held = [reached.sel(standard=standard).values >= level for standard in STANDARDS]
    cases = [*held, total <= 1 - level, least > 1 - level]
    return np.select(cases, [*STANDARDS, "no norm", "coexistence"], "partial")
