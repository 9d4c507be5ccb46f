"""Checks of the arguments that simulations and what is made of them share."""

from __future__ import annotations

import operator
from collections.abc import Iterable

import xarray as xr

from meanfield import InputError

LARGEST_POPULATION = 2**32 - 1  # agents are drawn from 32 random bits each
LARGEST_SEED = 2**63 - 1  # what NetCDF attrs hold
ENSEMBLE_VARIABLES = ("consensus_round", "consensus_word", "word_share", "said", "success_rate", "agents")


def population_sizes(n_agents: int | Iterable[int]) -> list[int]:
    several = isinstance(n_agents, Iterable) and not isinstance(n_agents, str) and getattr(n_agents, "ndim", 1) > 0
    many = list(n_agents) if several else [n_agents]
    sizes = [integer("n_agents", n, 2, LARGEST_POPULATION) for n in many]
    if not sizes or len(set(sizes)) < len(sizes):
        raise InputError(f"n_agents = {sizes}: expected one number of agents or several different ones")
    return sizes


def integer(name: str, value: object, least: int, most: int | None = None) -> int:
    expected = f"an integer of at least {least}" if most is None else f"an integer from {least} to {most}"
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < least or (most is not None and number > most):
        raise InputError(f"{name} = {value!r}: expected {expected}")
    return number


def check_level(level: object) -> None:
    """InputError unless it is the level of a confidence interval."""
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level < 1:
        raise InputError(f"level = {level!r}: expected a number between 0 and 1")


def ensembles(name: str, simulation: object) -> xr.Dataset:
    """What `simulate` returns, over (n_agents, run) also where one size was selected; InputError for anything else."""
    if not isinstance(simulation, xr.Dataset):
        raise InputError(f"{name} is a {type(simulation).__name__}: expected what validation.simulate returns")
    for variable in ("consensus_round", "consensus_word", "word_label", "n_agents"):
        if variable not in simulation.variables:
            raise InputError(f"{name} lacks {variable}: expected what validation.simulate returns")
    if "n_agents" not in simulation.dims:
        simulation = simulation.assign(
            {v: simulation[v].expand_dims("n_agents") for v in ENSEMBLE_VARIABLES if v in simulation}
        )
    if set(simulation["consensus_round"].dims) != {"n_agents", "run"} or simulation["word_label"].ndim != 1:
        raise InputError(f"{name} has the dims {', '.join(map(str, simulation.dims))}: expected n_agents and run")
    if not simulation.sizes["run"]:
        raise InputError(f"{name} has no runs: expected at least 1")
    return simulation.transpose("n_agents", "run", ...)
