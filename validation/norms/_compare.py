"""The rate equation of norm emergence against an ensemble of simulated runs."""

from __future__ import annotations

import warnings
from dataclasses import fields

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import check_level, expect, real_number, stamp
from theory.norms import NormRates
from validation.comparison._compare import compare_trajectories
from validation.norms._emergence import norm_simulation

SHARES = ("accepted", "complying")
RATES = ("conflicts", "thoughts", "chats")
SAME_TIME = 1e-9  # days
ENCOUNTERS, OPERATIONS = "option_encounters_per_day", "option_operations_sha256"


def compare(
    curves: xr.Dataset, simulation: xr.Dataset, *, level: float = 0.99, theory_error: float | None = None
) -> xr.Dataset:
    """Test whether norm emergence among N agents follows the rate equation, and how its error falls with N.

    The comparison is that of `validation.compare`, with the same verdicts, for the seven curves of [003] Fig. 2: the
    accepted and the complying share of either standard, and the conflicts, thoughts and chats per encounter. Time 0 is
    left out, where all runs are alike.

    NaN in `error_uncertainty` or `error_slope` means that the error is not resolved from the noise and needs more runs.
    The slope uses the sizes with a resolved error; a barely resolved one may count for one seed and not for another.
    The limit is a line in 1/N through the two largest sizes. For tipping with 100 and 1,000 agents the verdict is
    "sizes too small": in 1.5 % of the runs of a hundred the opposite standard wins.

    Curves of other operations, fractions of agents or rates than the simulation's are allowed as a control, with a
    `UserWarning`.

    Parameters
    ----------
    curves
        Result of `theory.norms.emergence` for this behaviour, at the times of the simulation:
        `emergence([behaviour], times=simulation["time"].values)`.
    simulation
        Result of `validation.norms.simulate`, with at least two runs.
    level
        As for `validation.compare`.
    theory_error
        As for `validation.compare`; by default the weight of one agent of one run in the mean, at the smallest N,
        because the mean of events that hardly any run shows has no t distribution.

    Returns
    -------
    Dataset with `simulated` (n_agents, time, observable), its `standard_error`, `theory` (time, observable), `z`,
    `band`, `within_band` (n_agents, time), `trajectory_agrees` (n_agents), `error` and `error_uncertainty` (n_agents),
    `error_slope`, `error_slope_interval`, `limit`, `limit_band` and `limit_verdict`, as for `validation.compare`.
    Its attrs have the hash of the operations and the fractions of both.

    Raises
    ------
    InputError
        If the curves are not of this behaviour or not at these times, there is only one run, neither of the two gives
        the encounters in a day, or an option is out of range.

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
    simulation = norm_simulation("simulation", simulation)
    check_level(level)
    if simulation.sizes["run"] < 2:
        raise InputError("simulation has 1 run: expected at least 2, for a standard error")
    if theory_error is None:
        theory_error = 1 / float(simulation["n_agents"].min() * simulation.sizes["run"])
    real_number("theory_error", theory_error, above=0)
    behaviour = str(simulation["behaviour"].item())
    curves = _curves_of(curves, behaviour, simulation["time"].values)
    if differing := differing_options(curves, simulation):
        warnings.warn(f"curves and simulation of {behaviour} differ in {'; '.join(differing)}", stacklevel=2)
    theory = _observables(curves, _encounters(curves, simulation)).transpose("time", "observable")
    simulated = _observables(simulation, _encounters(simulation, curves))
    simulated = simulated.transpose("n_agents", "time", "observable", "run").assign_attrs(long_name="observable")
    result = compare_trajectories(simulated.isel(time=slice(1, None)), theory.values[1:], level, theory_error)
    made_with = {}
    for side, data in (("theory", curves), ("simulation", simulation)):
        made_with[f"{side}_operations_sha256"] = data.attrs.get(OPERATIONS)
        made_with[f"{side}_fractions"] = _fractions(data, behaviour)
    result = result.assign_attrs({name: text for name, text in made_with.items() if text})
    return stamp(result, "norm_comparison", runs=simulation.sizes["run"], level=level, theory_error=theory_error)


def differing_options(curves: xr.Dataset, simulation: xr.Dataset) -> list[str]:
    """The rates, fractions or operations in which the models of the curves and the simulation differ, a text each.

    An attr that one of the two lacks counts as the same.
    """
    texts = []
    for field in fields(NormRates):
        theirs, ours = (data.attrs.get(f"option_{field.name}") for data in (curves, simulation))
        if theirs is not None and ours is not None and theirs != ours:
            texts.append(f"{field.name} ({theirs:g} and {ours:g})")
    theirs, ours = (_fractions(data, str(simulation["behaviour"].item())) for data in (curves, simulation))
    if theirs and ours and set(theirs.split(", ")) != set(ours.split(", ")):
        texts.append(f"fractions ({theirs} and {ours})")
    theirs, ours = (data.attrs.get(OPERATIONS) for data in (curves, simulation))
    if theirs and ours and theirs != ours:
        texts.append(f"operations (sha256 {theirs[:8]}… and {ours[:8]}…)")
    return texts


def _fractions(data: xr.Dataset, behaviour: str) -> str:
    """As `theory.norms` writes them: of several behaviours as 'name: mix; name: mix'. '' where there are none."""
    text = data.attrs.get("option_fractions", "")
    if ": " not in text:
        return text
    return dict(part.rpartition(": ")[::2] for part in text.split("; ")).get(behaviour, "")


def _encounters(data: xr.Dataset, other: xr.Dataset) -> float:
    """Encounters a day, from the other one if it does not say."""
    for one in (data, other):
        if ENCOUNTERS in one.attrs:
            return float(one.attrs[ENCOUNTERS])
    raise InputError(f"curves and simulation lack the attribute {ENCOUNTERS}: expected it of one of them at least")


def _curves_of(curves: object, behaviour: str, times: np.ndarray) -> xr.Dataset:
    """The curves of one behaviour; InputError unless they are there, at these times."""
    curves = expect(curves, "norm_curves", "curves")
    if behaviour not in np.atleast_1d(curves["behaviour"].values):
        raise InputError(f"curves are of {curves['behaviour'].values.tolist()}: expected {behaviour!r} as simulated")
    if "behaviour" in curves.dims:
        curves = curves.sel(behaviour=behaviour)
    found = curves["time"].values
    if found.shape != times.shape or np.abs(found - times).max() > SAME_TIME:
        expected = f"the {times.size} of the simulation, as from emergence(..., times=simulation['time'].values)"
        raise InputError(f"curves have {found.size} times up to {found.max():g}: expected {expected}")
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
