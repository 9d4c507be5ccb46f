"""Emergence of norms over time, and a few numbers that summarise it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from meanfield import InputError, solve
from meanfield.toolbox import check_level, stamp
from theory.norms._model import Setting
from theory.norms._observables import observables
from theory.norms._rates import NormRates, rates_of
from theory.norms._society import AGENTS, Behaviour, NormAgent, behaviours_of

DAYS = 2.0
SAVED_PER_DAY = 96


def emergence(
    behaviours: Sequence[str | Behaviour] | None = None,
    *,
    operations: xr.Dataset | None = None,
    agents: Sequence[NormAgent] = AGENTS,
    fractions: Mapping[tuple[str, str], float] | None = None,
    rates: NormRates | None = None,
    times: Sequence[float] | np.ndarray | None = None,
) -> xr.Dataset:
    """The curves of [003] Fig. 2 from the rate equation of `reaction_model`, each behaviour on its own.

    Parameters
    ----------
    behaviours
        Names or `Behaviour`s; by default the three of `BEHAVIOURS`.
    operations
        Operation probabilities; by default `default_operations()`, which are ours and not the paper's.
    agents
        Agents whose types and preferences make the fractions.
    fractions
        {(type, preference): fraction} for all behaviours, in place of `agents`.
    rates
        How often agents meet, plan and synthesise; by default `NormRates()`.
    times
        In days, increasing from 0; by default every quarter of an hour for two days.

    Returns
    -------
    Dataset over (behaviour, time) with `composition` (state) and the columns of `observables`, whose shares are also
    over `standard`. The coordinate `made_of` (behaviour) tells all that determines a curve.

    Raises
    ------
    InputError
        If an argument is not as described.

    See Also
    --------
    emergence_measures : times and sizes in one table
    reaction_model : where curves end, by `meanfield.fixed_points`
    validation.norms.simulate : N agents

    Examples
    --------
    The share that accepts each norm at the start, after a quarter of a day, and after one day and two.

    >>> curves = theory.norms.emergence(["smoking", "tipping"], times=np.array([0, 0.25, 1, 2]))
    >>> curves["accepted"].sel(standard="for").values.round(2)
    array([[0.3 , 0.9 , 0.89, 0.91],
           [0.2 , 0.71, 0.93, 0.96]])
    """
    times = np.linspace(0, DAYS, int(DAYS * SAVED_PER_DAY) + 1) if times is None else times
    settings = [Setting.of(one, operations, agents, fractions, rates) for one in behaviours_of(behaviours)]
    curves = []
    for one in settings:
        composition = solve(one.model, initial=one.start, times=times)["composition"].drop_vars("conserved_class")
        curves.append(observables(one.model, composition).assign(composition=composition))
    result = xr.concat(curves, dim="behaviour", combine_attrs="drop_conflicts").assign_coords(
        behaviour=[one.behaviour.name for one in settings],
        kind=("behaviour", [one.behaviour.kind for one in settings]),
        made_of=("behaviour", [one.made_of for one in settings]),
    )
    return stamp(result, "norm_emergence", **vars(rates_of(rates)))


def emergence_measures(curves: xr.Dataset, *, level: float = 0.7) -> xr.Dataset:
    """When and how far the norms of `emergence` spread.

    Parameters
    ----------
    curves
        From `emergence`, or `observables` over time.
    level
        Share at which a norm counts as accepted or complied with, between 0 and 1.

    Returns
    -------
    Dataset over the dims of `curves` except time, with `accepted_day` and `complying_day`, when the share reaches
    `level` (NaN if never); `reached_end` and `complying_end`, shares at the last time; `dip`, the largest fall of the
    accepted share below its maximum so far; `conflicts_surge`, the largest number of conflicts over the first, and
    `conflicts_left`, the last over the largest (NaN without conflicts).

    Raises
    ------
    InputError
        If the level is out of range, or `curves` has no time.

    See Also
    --------
    emergence : the curves

    Examples
    --------
    >>> curves = theory.norms.emergence(["smoking"])
    >>> measures = theory.norms.emergence_measures(curves).sel(behaviour="smoking", standard="for")
    >>> {name: round(float(measures[name]), 2) for name in ("accepted_day", "complying_day", "conflicts_surge")}
    {'accepted_day': 0.05, 'complying_day': 0.62, 'conflicts_surge': 2.72}
    """
    if not isinstance(curves, xr.Dataset):
        raise InputError(f"curves is a {type(curves).__name__}: expected what emergence returns")
    check_level(level)
    if "time" not in curves.dims or "time" not in curves.coords:
        raise InputError(
            f"curves have dims {tuple(curves.dims)} and coords {list(curves.coords)}: expected time in both"
        )
    conflicts, accepted = curves["conflicts"], curves["accepted"]
    first, most, last = conflicts.isel(time=0), conflicts.max("time"), conflicts.isel(time=-1)
    highest = np.maximum.accumulate(accepted.values, axis=accepted.get_axis_num("time"))
    measures = {
        "accepted_day": (_first_time(accepted, level), f"when {level:g} of the agents accept the standard"),
        "complying_day": (_first_time(curves["complying"], level), f"when {level:g} of them comply with the standard"),
        "reached_end": (curves["reached"].isel(time=-1), "fraction that accepted the standard, at the end"),
        "complying_end": (curves["complying"].isel(time=-1), "fraction that complies, at the end"),
        "dip": ((highest - accepted).max("time"), "fall of the accepted share from its maximum so far"),
        "conflicts_surge": ((most / first).where(first > 0), "largest number of conflicts over the first"),
        "conflicts_left": ((last / most).where(most > 0), "last number of conflicts over the largest"),
    }
    result = xr.Dataset({name: values.drop_vars("time", errors="ignore") for name, (values, _) in measures.items()})
    for name, (_, text) in measures.items():
        result[name].attrs = {"long_name": text, "units": "day" if name.endswith("_day") else "1"}
    return result


def _first_time(share: xr.DataArray, level: float) -> xr.DataArray:
    """When `share` first reaches `level`, by linear interpolation in time."""
    time = share["time"].values

    def first(values: np.ndarray) -> float:
        k = int(np.argmax(values >= level))
        if values[k] < level or k == 0:
            return np.nan if values[k] < level else float(time[0])
        return float(np.interp(level, values[k - 1 : k + 1], time[k - 1 : k + 1]))

    return xr.apply_ufunc(first, share, input_core_dims=[["time"]], vectorize=True)
