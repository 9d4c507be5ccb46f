"""Names of the release before this one; they warn, and go with the next."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float

from meanfield._finite_size.group_size_law import DEFAULT_SIZES, group_size_law
from meanfield._large_deviations.design import design
from meanfield._large_deviations.lifetime import lifetime
from meanfield._population.reaction_model import ReactionModel
from meanfield._population.single_policy import single_policy
from meanfield._population.single_policy import words_of as _words_of
from meanfield._tables.stability_files import write_as
from meanfield.core._game import WordGame
from meanfield.core._rates import reaction_tensor
from meanfield.toolbox._arguments import real_number, whole_number
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._errors import UnparsedError as _UnparsedError


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


def dense_tensor(policy: xr.Dataset) -> Float[np.ndarray, "states states states"]:
    """The dense reaction tensor: `core.reaction_tensor`."""
    _warn("dense_tensor(policy)", "core.reaction_tensor(core.WordGame(policy['q'].values))")
    with jax.enable_x64(True):
        return np.asarray(reaction_tensor(WordGame(single_policy(policy)["q"].values)))


def reaction_protocol(model: ReactionModel) -> tuple[Float[np.ndarray, "states states states states"], float]:
    """A population protocol: `model.protocol()`."""
    _warn("reaction_protocol(model)", "model.protocol()")
    return model.protocol()


def words_of(policy: xr.Dataset) -> tuple[str, ...]:
    """The words of a policy: `toolbox.words_of`."""
    _warn("meanfield.words_of", "meanfield.toolbox.words_of")
    return _words_of(policy)


def write_stability_csv(table: xr.Dataset, path: str | os.PathLike[str]) -> Path:
    """A stability table as CSV: `write_stability(table, "….csv")`."""
    _warn("write_stability_csv(table, path)", "write_stability(table, path), with a path that ends with .csv")
    return write_as(".csv", table, path)


def write_stability_latex(table: xr.Dataset, path: str | os.PathLike[str]) -> Path:
    """A stability table for LaTeX: `write_stability(table, "….tex")`."""
    _warn("write_stability_latex(table, path)", "write_stability(table, path), with a path that ends with .tex")
    return write_as(".tex", table, path)


def __getattr__(name: str) -> object:
    """The class of errors, which warns when it is looked up."""
    if name != "UnparsedError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _warn("meanfield.UnparsedError", "policy_extraction.UnparsedError", 4)
    return _UnparsedError


def _warn(old: str, new: str, stacklevel: int = 3) -> None:
    warnings.warn(f"{old} goes with the next release: use {new}", DeprecationWarning, stacklevel=stacklevel)
