"""The rate equation of norm emergence against an ensemble of simulated runs."""

from __future__ import annotations

import warnings

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import check_level, expect, real_number, stamp
from validation.comparison._compare import compare_trajectories

SHARES = ("accepted", "complying")
RATES = ("conflicts", "thoughts", "chats")
SAME_TIME = 1e-9  # days


def compare(
    curves: xr.Dataset, simulation: xr.Dataset, *, level: float = 0.99, theory_error: float | None = None
) -> xr.Dataset:
    """Test whether norm emergence among N agents follows the rate equation, and how its error falls with N.

    The comparison is made as in `validation.compare`, with the same verdicts, for the seven curves of [003] Fig. 2: the
    accepted and the complying share of either standard, and the conflicts, thoughts and chats per encounter. Time 0 is
    left out, where all runs are alike. NaN in `error_uncertainty` or `error_slope` means that the error is not resolved
    from the noise. The limit is a line in 1/N through the two largest sizes; for tipping with 100 and 1,000 agents the
    verdict is "sizes too small", since in 1.5 % of the runs of a hundred the opposite standard wins.

    Parameters
    ----------
    curves
        Result of `theory.norms.emergence` for this behaviour, with `times=simulation["time"].values`. Those of other
        operations, fractions of agents or rates are allowed as a control, with a `UserWarning`.
    simulation
        Result of `validation.norms.simulate`, with at least two runs.
    level
        As for `validation.compare`.
    theory_error
        As for `validation.compare`; by default the weight of one agent of one run in the mean, at the smallest N,
        because the mean of events that hardly any run shows has no t distribution.

    Returns
    -------
    Dataset with the variables of `validation.compare` about trajectories, over (n_agents, time, observable).

    Raises
    ------
    InputError
        If the curves are not of this behaviour or not at these times, there is only one run, or an option is out of
        range.

    See Also
    --------
    theory.norms.emergence : the theory

    Examples
    --------
    >>> runs = validation.norms.simulate("smoking", n_agents=[10, 100], runs=50, seed=1, days=0.2)
    >>> curves = theory.norms.emergence(["smoking"], times=runs["time"].values)
    >>> comparison = validation.norms.compare(curves, runs)
    >>> comparison["trajectory_agrees"].values
    array([False,  True])
    >>> comparison["error"].values.round(4)
    array([0.0115, 0.    ])
    """
    simulation = expect(simulation, "norm_simulation", "simulation")
    if "n_agents" not in simulation.dims:
        simulation = simulation.expand_dims("n_agents")
    check_level(level)
    if simulation.sizes["run"] < 2:
        raise InputError("simulation has 1 run: expected at least 2, for a standard error")
    if theory_error is None:
        theory_error = 1 / float(simulation["n_agents"].min() * simulation.sizes["run"])
    real_number("theory_error", theory_error, above=0)
    curves = _curves_of(curves, simulation)
    if other := differing(curves, simulation):
        warnings.warn(other, stacklevel=2)
    theory = _observables(curves).transpose("time", "observable")
    simulated = _observables(simulation).transpose("n_agents", "time", "observable", "run")
    simulated = simulated.assign_attrs(long_name="observable")
    result = compare_trajectories(simulated.isel(time=slice(1, None)), theory.values[1:], level, theory_error)
    return stamp(result, "norm_comparison", runs=simulation.sizes["run"], level=level, theory_error=theory_error)


def differing(curves: xr.Dataset, simulation: xr.Dataset) -> str:
    """Differences in what curves and simulation of one behaviour are made of, or ''."""
    theirs, ours = (str(one["made_of"].item()) for one in (curves, simulation))
    name = simulation["behaviour"].item()
    return f"curves of {name} are made of {theirs}, and the simulation of {ours}" if theirs != ours else ""


def _curves_of(curves: object, simulation: xr.Dataset) -> xr.Dataset:
    """The curves of the simulated behaviour; InputError unless they are there, at the same times."""
    curves, behaviour = expect(curves, "norm_curves", "curves"), simulation["behaviour"].item()
    if behaviour not in np.atleast_1d(curves["behaviour"].values):
        raise InputError(f"curves are of {curves['behaviour'].values.tolist()}: expected {behaviour!r} as simulated")
    if "behaviour" in curves.dims:
        curves = curves.sel(behaviour=behaviour)
    found, times = curves["time"].values, simulation["time"].values
    if found.shape != times.shape or np.abs(found - times).max() > SAME_TIME:
        expected = f"the {times.size} of the simulation, as from emergence(..., times=simulation['time'].values)"
        raise InputError(f"curves have {found.size} times up to {found.max():g}: expected {expected}")
    return curves


def _observables(data: xr.Dataset) -> xr.DataArray:
    """Shares by standard, and events an encounter, along `observable`: all of them between 0 and 1."""
    parts = [
        data[name].sel(standard=standard, drop=True).expand_dims(observable=[f"{name} {standard}"])
        for name in SHARES
        for standard in data["standard"].values
    ]
    encounters = data.attrs["option_encounters_per_day"]
    parts += [(data[name] / encounters).expand_dims(observable=[f"{name} an encounter"]) for name in RATES]
    return xr.concat(parts, dim="observable")
