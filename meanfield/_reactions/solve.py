"""Solutions of the rate equation of a reaction model."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from meanfield._numerics.compiled import in_threads
from meanfield._numerics.tsit5 import MAX_STEPS, Tolerances
from meanfield._population.compositions import validate_fractions
from meanfield._population.provenance import stamp
from meanfield._population.reaction_model import ReactionModel
from meanfield._population.trajectory_kernel import FIRST_STEP, LEAST_WORK, NO_MIXTURE, drift_by_moves, follow
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
    x, residual = courses(model, x0, times, tolerances)
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


def courses(
    model: ReactionModel, starts: Float[np.ndarray, "starts states"], times: np.ndarray, tolerances: Tolerances
) -> tuple[Float[np.ndarray, "starts times states"], Float[np.ndarray, "starts times"]]:
    """Solutions from each start at each time, and max|dx/dt| there."""
    x = np.array(starts, dtype=np.float64, order="C")[:, None]
    times, moves = np.ascontiguousarray(times), tuple(map(np.ascontiguousarray, model.moves))
    # The time scale is the model's own.
    limits = (float(times[-1]), *map(float, tolerances), FIRST_STEP / model.fastest, -1.0, float(MAX_STEPS))
    observed, ends = np.empty((len(x), len(times), model.n_states)), np.empty((len(x), 2))
    residual = np.empty(observed.shape[:2])

    def solve(lanes: slice) -> None:
        slope = np.empty(model.n_states)
        for lane in range(lanes.start, lanes.stop):
            ends[lane] = follow(x[lane], NO_MIXTURE, moves, times, limits, observed[lane])
            residual[lane] = [drift_by_moves(one, *moves, slope) for one in observed[lane]]

    in_threads(solve, len(x), LEAST_WORK * (model.n_states + len(moves[0])))
    if (ends[:, 1] < 0).any():
        raise InputError(f"time {times[-1]:g} is not reached in {MAX_STEPS:,} steps: expected an earlier one")
    return observed, residual


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
    validate_fractions(starts.values)
    kept = {name: values for name, values in starts.coords.items() if "state" not in values.dims}
    return starts.drop_vars(list(starts.coords)).assign_coords(kept)
