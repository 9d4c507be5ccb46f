"""Observables of a society: conflicts, thoughts and chats, and the shares that accept and comply."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield import InputError, ReactionModel
from meanfield.toolbox import in_order, real_numbers
from theory.norms._model import CHANNELS, EVENTS
from theory.norms._society import STANDARDS
from theory.norms._states import LABELS, NORM_STATES

SHARES = {
    "accepted": (("qualified", "complying"), "fraction of agents with the standard among their qualified norms"),
    "complying": (("complying", "superseded"), "fraction of agents that comply with the standard in plans"),
    "reached": (
        ("qualified", "complying", "superseded"),
        "fraction that accepted the standard, as such or in an abstract",
    ),
    "informed": (("informed",), "fraction of agents that only know of the standard"),
}


def observables(model: ReactionModel, composition: xr.DataArray | np.ndarray) -> xr.Dataset:
    """The panels of [003] Fig. 2 for a composition, from theory or a simulation.

    Parameters
    ----------
    model
        From `reaction_model`.
    composition
        Fractions of agents, dims (..., state); arrays have the state last, in the order of the model.

    Returns
    -------
    Dataset over the other dims of `composition` with `conflicts`, `thoughts` and `chats`, expected numbers per agent
    and day among infinitely many agents; and also over `standard`: `accepted` (qualified or complying), `complying`
    (complying, or superseded, as part of an abstract norm), `reached` (any of the three) and `informed`.

    Raises
    ------
    InputError
        If `reaction_model` did not make the model, or the composition lacks states or does not sum to 1.

    See Also
    --------
    meanfield.solve : compositions over time

    Examples
    --------
    At the start only the entrepreneurs comply, three agents in ten. Each agent finds 14 conflicts a day.

    >>> from theory import norms
    >>> model = norms.reaction_model(norms.default_operations(), "smoking")
    >>> seen = norms.observables(model, norms.initial_composition("smoking"))
    >>> float(seen["complying"].sel(standard="for")), round(float(seen["conflicts"]))
    (0.3, 14)
    """
    if not isinstance(model, ReactionModel) or list(model.states) != LABELS or len(model.alpha) != len(CHANNELS):
        raise InputError(f"model is a {type(model).__name__}: expected the result of theory.norms.reaction_model")
    x = _labelled(composition)
    off = np.abs(x.sum("state") - 1)
    if not (off <= 1e-6).all():
        raise InputError(f"composition misses a sum of 1 by {float(off.max()):.3g}: expected fractions of agents")
    sides = (xr.DataArray(side, {"state": LABELS}, ("channel", "state")) for side in (model.alpha, model.beta))
    observing, acting = (x.dot(side) for side in sides)
    result = xr.Dataset(coords={"standard": list(STANDARDS)})
    for name, channels in EVENTS.items():
        number = (observing * acting).isel(channel=list(channels)).sum("channel") * model.encounter_rate
        text = {"long_name": f"{name} per agent and {model.time_unit}", "units": f"1/{model.time_unit}"}
        result[name] = number.assign_attrs(text)
    for name, (levels, text) in SHARES.items():
        member = [[float(s.standard == one and s.level in levels) for one in STANDARDS] for s in NORM_STATES]
        select = xr.DataArray(member, {"state": LABELS}, ("state", "standard"))
        result[name] = x.dot(select).assign_attrs({"long_name": text, "units": "1"})
    return result


def _labelled(composition: xr.DataArray | np.ndarray) -> xr.DataArray:
    if not isinstance(composition, xr.DataArray):
        values = real_numbers(composition, "composition")
        dims = [*(f"dim_{k}" for k in range(values.ndim - 1)), "state"]
        composition = xr.DataArray(values, dims=dims if values.ndim else ())
    if "state" not in composition.dims:
        raise InputError(f"composition has dims {composition.dims}: expected state")
    ordered = in_order(composition, {"state": LABELS}, "composition")
    return ordered.assign_coords(state=LABELS).drop_vars("conserved_class", errors="ignore")
