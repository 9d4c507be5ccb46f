"""Collective numbers of populations that play a policy, and results of several policies as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import meanfield
from meanfield import ConvergenceError


def labels_of(one: xr.Dataset | xr.DataArray) -> dict[str, str]:
    """Model and pair, where they are told."""
    return {dim: one[dim].item() for dim in ("model", "pair") if dim in one.coords and one[dim].ndim == 0}


def stacked(results: list[xr.Dataset]) -> xr.Dataset:
    """Results along the dims in which their labels differ."""
    dims = [
        dim for dim in ("model", "pair") if len({one.coords[dim].item() for one in results if dim in one.coords}) > 1
    ]
    whole = xr.merge([one.expand_dims(dims) for one in results], join="outer", compat="no_conflicts")
    for name, values in whole.data_vars.items():  # absent numbers are NaN
        if results[0][name].dtype.kind == "b":
            whole[name] = (values == 1).assign_attrs(values.attrs)
        elif results[0][name].dtype.kind == "U":
            whole[name] = values.fillna("").astype(str).assign_attrs(values.attrs)
    return whole


def other_word(words: tuple[str, ...], strong: str) -> str:
    return "" if not strong else words[1 - words.index(strong)]


def collective_numbers(policy: xr.Dataset, words: tuple[str, ...], weak: str) -> dict[str, Any]:
    """κ and N_c of the group-size law, the critical mass of the weak word, the attractors, and why some are missing."""
    found: dict[str, Any] = {"kappa": np.nan, "n_critical": np.nan, "strong_word": "", "critical_mass": np.nan}
    found |= {"conventions": "", "forgets": False}
    reasons = []
    try:
        points = meanfield.fixed_points(policy)
        found["conventions"] = "; ".join(points["label"].values[points["stability"].values == "stable"])
        found["forgets"] = bool((points["branch"] < 1).all())
        law = meanfield.group_size_law(policy, n_agents=[2])
        found |= {name: law[name].item() for name in ("kappa", "n_critical", "strong_word")}
        if np.isnan(found["kappa"]):
            reasons.append(f"κ: {law.attrs['reason']}")
        weak = weak or other_word(words, found["strong_word"])
        if weak:
            mass = meanfield.critical_mass(policy, word=weak)
            found["critical_mass"] = mass["critical_mass"].item()
            if np.isnan(found["critical_mass"]):
                reasons.append(f"critical mass: {mass.attrs['reason']}")
        else:
            reasons.append("critical mass: there is no weak word")
    except ConvergenceError as error:
        reasons.append(str(error))
    return found | {"reason": "; ".join(reasons)}
