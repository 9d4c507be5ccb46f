"""Solutions of the rate equation of a reaction model."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from meanfield._population.compositions import validate_fractions
from meanfield._population.provenance import stamp
from meanfield._population.reaction_model import ReactionModel
from meanfield._population.trajectories import Tolerances, trajectories
from meanfield.toolbox._columns import labelled
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._labels import in_order, real_numbers


def solve_reactions(
    model: ReactionModel,
    initial: xr.DataArray | np.ndarray,
    times: Float[np.ndarray, " times"],
    tolerances: Tolerances,
) -> xr.Dataset:
    """The result of `solve` for a reaction model."""
    starts = initial_compositions(model, initial)
    x0 = starts.values.reshape(-1, model.n_states)
    x, residual = trajectories(model, x0, times, tolerances)
    outer = {str(dim): size for dim, size in starts.sizes.items() if dim != "state"}
    unit = model.time_unit
    x, residual = (values.reshape(*outer.values(), *values.shape[1:]) for values in (x, residual))
    columns = {
        "composition": ((*outer, "time", "state"), x, "fraction of agents"),
        "residual": ((*outer, "time"), residual, "max |dx/dt|", f"1/{unit}"),
    }
    time = ("time", times, {"long_name": "time", "units": unit})
    result = labelled(columns, coords={**starts.coords, **state_coords(model), "time": time})
    return stamp(result, "reaction_solution", None, **tolerances._asdict())


def state_coords(model: ReactionModel) -> dict[str, Any]:
    """The names of the states, and which class they belong to."""
    return {
        "state": ("state", np.array(model.names, dtype=str), {"long_name": "state of an agent"}),
        "conserved_class": ("state", model.classes, {"long_name": "class of states that agents never leave"}),
    }


def initial_compositions(model: ReactionModel, initial: xr.DataArray | np.ndarray) -> xr.DataArray:
    """Compositions to start from, dims (further ones, state), states in the order of the model."""
    if not isinstance(initial, xr.DataArray):
        values = real_numbers(initial, "initial")
        if values.shape != (model.n_states,):
            raise InputError(f"initial has shape {values.shape}: expected ({model.n_states},), or a DataArray for more")
        initial = xr.DataArray(values, dims=("state",))
    if "state" not in initial.dims or initial.sizes["state"] != model.n_states or not initial.size:
        raise InputError(f"initial has sizes {dict(initial.sizes)}: expected {model.n_states} along state")
    initial = in_order(initial, {"state": model.names}, "initial")
    if "time" in initial.dims:
        raise InputError("initial has a dim time: expected another name for a batch of starts")
    starts = initial.transpose(..., "state")
    starts = starts.copy(data=real_numbers(starts.values, "initial"))
    validate_fractions(starts.values, "initial")
    kept = {name: values for name, values in starts.coords.items() if "state" not in values.dims}
    return starts.drop_vars(list(starts.coords)).assign_coords(kept)
