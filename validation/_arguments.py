"""Checks of the arguments that simulations share."""

from __future__ import annotations

import operator
from collections.abc import Iterable

from meanfield import InputError

LARGEST_POPULATION = 2**32 - 1  # agents are drawn from 32 random bits each
LARGEST_SEED = 2**63 - 1  # what NetCDF attrs hold


def population_sizes(n_agents: int | Iterable[int]) -> list[int]:
    many = list(n_agents) if isinstance(n_agents, Iterable) and not isinstance(n_agents, str) else [n_agents]
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
