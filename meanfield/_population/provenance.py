"""Where a result comes from: versions, policy and options, in its attrs."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
import xarray as xr

from meanfield._population.policy_schema import numbered_by_pair
from meanfield._population.population import Population
from meanfield._population.single_policy import policy_hash, space_of

Option = str | int | float | bool | None

# Looked up here since each look-up reads a file, and the first one imports a reader of e-mail.
VERSIONS = {f"version_{name.replace('-', '_')}": version(name) for name in ("meanfield-llm", "jax", "numpy")}


def stamp(
    result: xr.Dataset, kind: str, policy: xr.Dataset | Population | None = None, **options: Option
) -> xr.Dataset:
    """`result` with attrs that name its kind, the package versions, the policy and the options."""
    attrs: dict[str, object] = {"kind": kind, **VERSIONS}
    if isinstance(policy, Population):
        attrs |= {"policy": policy.name, "policy_sha256": policy.sha256, "memory_length": policy.space.memory_length}
    elif policy is not None:
        policy = numbered_by_pair(policy)
        attrs |= {"policy_sha256": policy_hash(policy), "memory_length": space_of(policy).memory_length}
    for name, value in options.items():  # NetCDF attrs hold numbers and strings only
        plain = int(value) if isinstance(value, (bool, np.bool_)) else value
        attrs[f"option_{name}"] = "none" if plain is None else plain
    return result.assign_attrs(attrs)
