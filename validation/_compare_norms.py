"""The rate equation of norm emergence against an ensemble of simulated runs."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield import InputError, stamp
from validation._arguments import check_level
from validation._compare import compare_trajectories
from validation._norm_emergence import norm_simulation

SHARES = ("accepted", "complying")
RATES = ("conflicts", "thoughts", "chats")
SAME_TIME = 1e-9  # days


def compare_norms(
    curves: xr.Dataset, simulation: xr.Dataset, *, level: float = 0.99, theory_error: float | None = None
) -> xr.Dataset:
    """Does norm emergence among N agents follow the rate equation, and how does what it misses fall with N?

    The comparison is that of `compare`, with the same verdicts, of the seven curves of [003] Fig. 2: the accepted and
    the complying share of either standard, and the conflicts, thoughts and chats an encounter. Time 0 is left out:
    there all runs are alike, and all that differs is that of N agents none meets itself.

    Parameters
    ----------
    curves
        What `theory.norms.emergence` returns for this behaviour, at the times of the simulation:
        `emergence([behaviour], times=simulation["time"].values)`.
    simulation
        What `simulate_norms` returns, with at least two runs.
    level
        As for `compare`.
    theory_error
        As for `compare`; by default what one agent of one run adds to the mean, at the smallest N. Of things so rare
        that hardly a run shows them the mean has no t distribution.

    Returns
    -------
    Dataset with `simulated` (n_agents, time, observable), its `standard_error`, `theory` (time, observable), `z`,
    `band`, `within_band` (n_agents, time), `trajectory_agrees` (n_agents), `error` and `error_uncertainty` (n_agents),
    `error_slope`, `error_slope_interval`, `limit`, `limit_band` and `limit_verdict`, all as `compare` describes them.

    Raises
    ------
    InputError
        If the curves are not of this behaviour or not at these times, there is one run only, or an option is out of
        range.
    """
    simulation = norm_simulation("simulation", simulation)
    check_level(level)
    if simulation.sizes["run"] < 2:
        raise InputError("simulation has 1 run: expected at least 2, for a standard error")
    if theory_error is None:
        theory_error = 1 / float(simulation["n_agents"].min() * simulation.sizes["run"])
    if not theory_error > 0:
        raise InputError(f"theory_error = {theory_error}: expected a positive number")
    behaviour = str(simulation["behaviour"].item())
    curves = _curves_of(curves, behaviour, simulation["time"].values)
    encounters = simulation.attrs["option_encounters_per_day"]
    theory = _observables(curves, curves.attrs["option_encounters_per_day"]).transpose("time", "observable")
    simulated = _observables(simulation, encounters).transpose("n_agents", "time", "observable", "run")
    simulated = simulated.assign_attrs(long_name="observable").isel(time=slice(1, None))
    result = compare_trajectories(simulated, theory.values[1:], level, theory_error)
    hashes = {
        f"{side}_operations_sha256": data.attrs["option_operations_sha256"]
        for side, data in (("theory", curves), ("simulation", simulation))
    }
    return stamp(
        result, "norm_comparison", runs=simulation.sizes["run"], level=level, theory_error=theory_error
    ).assign_attrs(hashes)


def _curves_of(curves: object, behaviour: str, times: np.ndarray) -> xr.Dataset:
    """The curves of one behaviour; InputError unless they are there, at these times."""
    expected = "expected what theory.norms.emergence returns"
    if not isinstance(curves, xr.Dataset):
        raise InputError(f"curves is a {type(curves).__name__}: {expected}")
    lacking = [name for name in (*SHARES, *RATES, "behaviour", "time") if name not in curves.variables]
    if lacking:
        raise InputError(f"curves lack {lacking[0]}: {expected}")
    if behaviour not in np.atleast_1d(curves["behaviour"].values):
        raise InputError(f"curves are of {curves['behaviour'].values.tolist()}: expected {behaviour!r} as simulated")
    if "behaviour" in curves.dims:
        curves = curves.sel(behaviour=behaviour)
    found = curves["time"].values
    if found.shape != times.shape or np.abs(found - times).max() > SAME_TIME:
        raise InputError(
            f"curves have {found.size} times up to {found.max():g}: expected the {times.size} of the simulation, as "
            "from emergence(..., times=simulation['time'].values)"
        )
    return curves


def _observables(data: xr.Dataset, encounters: float) -> xr.DataArray:
    """Shares by standard, and events an encounter, along `observable`: all of them between 0 and 1."""
    parts = [
        data[name].sel(standard=standard, drop=True).expand_dims(observable=[f"{name} {standard}"])
        for name in SHARES
        for standard in data["standard"].values
    ]
    parts += [(data[name] / encounters).expand_dims(observable=[f"{name} an encounter"]) for name in RATES]
    return xr.concat(parts, dim="observable")
