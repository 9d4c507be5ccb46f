"""The fixed points of the norms' reaction model, and which norm holds in each."""

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

    Beside random starts, the search follows solutions from the start of `emergence`, and from full compliance with
    either standard. The fractions fix the kinds of agents, not who holds a norm.

    A state without norms is a fixed point if norms never begin by habit (`identify_habit` = 0). It belongs to a
    continuum over who is informed, and is unstable if agents who learn a norm can pass it on to each other. A society
    with entrepreneurs never reaches it, since no agent forgets a norm.

    Parameters
    ----------
    behaviour, operations, agents, fractions, rates
        As for `emergence`.
    level
        Smallest share at which a norm counts as held by all, above 1/2, up to 1.
    search
        `starts`, `seed` and `progress` of `meanfield.fixed_points`.

    Returns
    -------
    Dataset as from `meanfield.fixed_points`, time in days, with the columns of `observables` and `regime`
    (fixed_point), by the share that holds a standard (`reached`): 'for' or 'against' if this standard has at least
    `level`, 'no norm' if both together have at most 1 - `level`, 'coexistence' if each has more than 1 - `level`, else
    'partial'. A continuum has the regime of one of its points.

    Raises
    ------
    InputError
        If an argument is not as described.

    See Also
    --------
    emergence : how they are reached
    entrepreneur_threshold : which is reached

    Examples
    --------
    The only one that is found for the ten agents of the paper: the norm against smoking holds.

    >>> from theory.norms import fixed_points
    >>> points = fixed_points("smoking", starts=1)
    >>> points["regime"].values.tolist(), points["stability"].values.tolist()
    (['for'], ['stable'])
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
