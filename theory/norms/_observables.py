"""Observables of a society: conflicts, thoughts and chats, and the shares that accept and comply."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield import InputError, ReactionModel
from meanfield.toolbox import real_numbers, whole_number
from theory.norms._model import CHANNELS
from theory.norms._society import STANDARDS
from theory.norms._states import NORM_STATES

EVENTS = {
    "conflicts": ("chat", "conflict thought", "conflict"),
    "thoughts": ("thought", "conflict thought"),
    "chats": ("chat",),
}
SHARES = {
    "accepted": (("qualified", "complying"), "fraction of agents with the standard among their qualified norms"),
    "complying": (("complying", "superseded"), "fraction of agents that comply with the standard in plans"),
    "reached": (
        ("qualified", "complying", "superseded"),
        "fraction that accepted the standard, as such or in an abstract",
    ),
    "informed": (("informed",), "fraction of agents that only know of the standard"),
}


def observables(
    model: ReactionModel, composition: xr.DataArray | np.ndarray, *, n_agents: int | None = None
) -> xr.Dataset:
    """The panels of [003] Fig. 2 for a composition, from theory or a simulation.

    Parameters
    ----------
    model
        From `reaction_model`.
    composition
        Fractions of agents, dims (..., state); arrays have the state last, in the order of the model.
    n_agents
        N ≥ 2 agents, of whom none meets itself. Default: infinitely many.

    Returns
    -------
    Dataset over the other dims of `composition` with `conflicts`, `thoughts` and `chats`, expected numbers per agent
    and day; and also over `standard`: `accepted` (qualified or complying), `complying` (complying, or superseded, as
    part of an abstract norm), `reached` (any of the three) and `informed`.

    Raises
    ------
    InputError
        If `reaction_model` did not make the model, or the composition lacks states or does not sum to 1.

    See Also
    --------
    emergence : observables over time

    Examples
    --------
    At the start only the entrepreneurs comply, three agents in ten. Each agent finds 14 conflicts a day.

    >>> from theory import norms
    >>> model = norms.reaction_model(norms.default_operations(), "smoking")
    >>> seen = norms.observables(model, norms.initial_composition("smoking"))
    >>> float(seen["complying"].sel(standard="for")), round(float(seen["conflicts"]))
    (0.3, 14)
    """
    labels = [state.label for state in NORM_STATES]
    if not isinstance(model, ReactionModel) or list(model.states) != labels or len(model.alpha) != len(CHANNELS):
        raise InputError(f"model is a {type(model).__name__}: expected the result of theory.norms.reaction_model")
    x = _labelled(composition, labels)
    total = x.sum("state").values
    if not (np.abs(total - 1) <= 1e-6).all():
        worst = total.flat[int(np.abs(total - 1).argmax())]
        raise InputError(f"composition does not sum to 1 but to {worst:.12g}: expected fractions of agents")

    def seen(side: np.ndarray) -> xr.DataArray:
        return x.dot(xr.DataArray(side, dims=("channel", "state"), coords={"state": labels}))

    rate = seen(model.alpha) * seen(model.beta)
    if n_agents is not None:  # there each would meet itself as often as any other
        n_agents = whole_number("n_agents", n_agents, 2)
        rate = (n_agents * rate - seen(model.alpha * model.beta)) / (n_agents - 1)
    result = xr.Dataset(coords={"standard": list(STANDARDS)})
    for name, events in EVENTS.items():
        number = rate.isel(channel=[one.event in events for one in CHANNELS]).sum("channel") * model.encounter_rate
        text = {"long_name": f"{name} per agent and {model.time_unit}", "units": f"1/{model.time_unit}"}
        result[name] = number.assign_attrs(text)
    for name, (levels, text) in SHARES.items():
        member = [[float(s.standard == one and s.level in levels) for one in STANDARDS] for s in NORM_STATES]
        select = xr.DataArray(member, dims=("state", "standard"), coords={"state": labels})
        result[name] = x.dot(select).assign_attrs({"long_name": text, "units": "1"})
    return result


def _labelled(composition: xr.DataArray | np.ndarray, labels: list[str]) -> xr.DataArray:
    if not isinstance(composition, xr.DataArray):
        values = real_numbers(composition, "composition")
        dims = [*(f"dim_{k}" for k in range(values.ndim - 1)), "state"]
        composition = xr.DataArray(values, dims=dims if values.ndim else ())
    if composition.sizes.get("state") != len(labels):
        raise InputError(f"composition has sizes {dict(composition.sizes)}: expected {len(labels)} along state")
    if "state" not in composition.coords:
        return composition.assign_coords(state=labels)
    if set(composition["state"].values) != set(labels):
        raise InputError("composition has other states than the model: expected the labels in model.states")
    return composition.sel(state=labels).drop_vars("conserved_class", errors="ignore")
