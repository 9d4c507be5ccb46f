"""Names of the release before this one; they warn, and go with the next."""

from __future__ import annotations

import json
import os
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

MOVED = ("evaluation_form", "questionnaire_scores", "simulate_society", "TableOperations")


def average(simulation: xr.Dataset) -> xr.Dataset:
    """Means over the runs and their standard errors."""
    _warn("average(simulation)", "simulation.mean('run')")
    numbers = simulation.drop_vars(["events", "count"], errors="ignore")
    errors = numbers.std("run", ddof=1) / np.sqrt(simulation.sizes["run"])
    means = numbers.mean("run", keep_attrs=True)
    return means.assign({f"{name}_standard_error": errors[name] for name in errors.data_vars})


def read_evaluation(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A form that was filled in."""
    _warn("read_evaluation(path)", "json.loads(Path(path).read_text()); questionnaire_scores checks the forms")
    return json.loads(Path(path).read_text(encoding="utf-8"))


def __getattr__(name: str) -> object:
    """Names of the society of agents, which became an example."""
    if name not in MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _warn(f"validation.norms.{name}", f"paper_figs.norm_society.{name}", 4)
    return getattr(import_module("paper_figs.norm_society"), name)


def _warn(old: str, new: str, stacklevel: int = 3) -> None:
    warnings.warn(f"{old} goes with the next release: use {new}", DeprecationWarning, stacklevel=stacklevel)
