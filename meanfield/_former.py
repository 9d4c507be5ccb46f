"""Names of the release before this one; they warn, and go with the next."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield._finite_size.group_size_law import DEFAULT_SIZES, group_size_law
from meanfield._large_deviations.design import design
from meanfield._large_deviations.lifetime import lifetime
from meanfield.toolbox._arguments import real_number, whole_number
from meanfield.toolbox._errors import InputError


def intervention(policy: xr.Dataset, *, kappa: float = 0.0, progress: bool = False) -> xr.Dataset:
    """The smallest change that makes the other word strong: `design(policy, of="kappa", value=-kappa)`."""
    _warn("intervention(policy, kappa=kappa)", "design(policy, of='kappa', value=-kappa)")
    kappa = real_number("kappa", kappa, least=0, most=0.5)
    changed = design(policy, of="kappa", value=-kappa, progress=progress)
    return changed.rename(value_before="kappa_before", value_after="kappa_after")


def majority_law(
    policy: xr.Dataset,
    *,
    n_agents: int | Sequence[int] | np.ndarray = DEFAULT_SIZES,
    rounds: Sequence[float] | np.ndarray | None = None,
) -> xr.Dataset:
    """Which word is ahead where there is one attractor: `group_size_law(policy, order=2, rounds=rounds)`."""
    _warn("majority_law(policy, ...)", "group_size_law(policy, order=2, ...), which also answers for two attractors")
    law = group_size_law(policy, n_agents=n_agents, order=2, rounds=rounds)
    return law.rename(strong_word="majority_word", log_weak_probability="log_minority_probability")


def prolong(
    policy: xr.Dataset, *, fixed_point: int, n_agents: int, factor: float = 2.0, progress: bool = False
) -> xr.Dataset:
    """The smallest change with which a convention lives `factor` times as long: `design(policy, of="barrier", ...)`."""
    new = "design(policy, of='barrier', fixed_point=fixed_point, value=barrier + log(factor) / n_agents)"
    _warn("prolong(policy, ...)", new)
    n_agents, factor = whole_number("n_agents", n_agents, 2), real_number("factor", factor, above=0)
    barriers = lifetime(policy, n_agents=n_agents)["barrier"]
    known = barriers["fixed_point"].values.tolist()
    if fixed_point not in known:
        raise InputError(f"fixed_point = {fixed_point!r}: expected an attractor, one of {known}")
    value = barriers.sel(fixed_point=fixed_point).item() + float(np.log(factor)) / n_agents
    changed = design(policy, of="barrier", fixed_point=fixed_point, value=value, progress=progress)
    return changed.rename(value_before="barrier_before", value_after="barrier_after")


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} goes with the next release: use {new}", DeprecationWarning, stacklevel=3)
