"""Derivatives of a fixed point of a reaction model, and of its leading eigenvalue, with respect to rates of moves."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield._numerics.stability import MARGINAL
from meanfield._population.compositions import validate_composition
from meanfield._population.provenance import stamp
from meanfield._population.reaction_model import ReactionModel
from meanfield._reactions.modes import Modes, modes_at
from meanfield._reactions.solve import state_coords
from meanfield.core._export import exported
from meanfield.toolbox._columns import labelled
from meanfield.toolbox._errors import InputError

reaction_gradients = exported("meanfield.core._sensitivity", "reaction_gradients")

QUANTITIES = ("composition", "eigenvalue")
SIDES = np.array(["first", "second", "spontaneous"])
AT_REST = 1e-9  # max|dx/dt| in units of the fastest rate
DEFECTIVE = 1e-11  # |l·r|/(|l||r|); derivatives are good to about 1e-16 over this number


def reaction_sensitivity(model: ReactionModel, of: str, fixed_point: object) -> xr.Dataset:
    """The result of `sensitivity` for a reaction model."""
    if of not in QUANTITIES:
        raise InputError(f"of = {of!r}: expected one of {', '.join(QUANTITIES)} for a ReactionModel")
    if len(model.changes):
        raise InputError(
            "policy has rates that are functions of the composition: expected constant ones, by whose logarithms the "
            "derivatives are"
        )
    if not isinstance(fixed_point, (xr.DataArray, np.ndarray, list, tuple)):
        raise InputError(f"fixed_point = {fixed_point!r}: expected a composition for a ReactionModel")
    x = validate_composition(fixed_point, model, "fixed_point")
    speed = float(np.abs(model.drift(x)).max())
    if speed > AT_REST * model.fastest:
        raise InputError(f"fixed_point has max|dx/dt| = {speed:.2g}: expected a fixed point")
    modes = modes_at(model, x, model.class_masses(x)[model.classes] > 0)
    if not modes.values.size or (np.abs(modes.values) <= np.maximum(modes.errors, MARGINAL)).any():
        found = "a zero eigenvalue" if modes.values.size else "no perturbations"
        raise InputError(f"fixed_point has {found}: expected one that moves smoothly with the model")
    moves, channels = model.moves, len(model.alpha)
    by_state, by_eigenvalue = reaction_gradients(model.game, x, *_eigenvectors(modes, of))
    label = "derivative with respect to the logarithm of the rate of the move"
    derivative = {
        "composition": (("move", "state"), by_state.T, label, "1"),
        "eigenvalue": (("move",), by_eigenvalue, label, f"1/{model.time_unit}"),
    }[of]
    names = np.array(model.names, dtype=str)
    coords = {
        **state_coords(model),
        "source": ("move", names[moves.source]),
        "target": ("move", names[moves.target]),
        "side": ("move", SIDES[np.where(moves.field == 2 * channels, 2, moves.field >= channels)]),
        "channel": ("move", np.where(moves.field == 2 * channels, -1, moves.field % max(channels, 1))),
    }
    result = labelled({"derivative": derivative, "composition": (("state",), x, "fraction of agents")}, coords=coords)
    if of == "eigenvalue":
        result.attrs["value"] = float(modes.values[0].real * model.fastest)
    return stamp(result.assign_attrs(of=of), "reaction_sensitivity")


def _eigenvectors(modes: Modes, of: str) -> tuple[np.ndarray, np.ndarray]:
    """Real and imaginary parts of the leading left and right eigenvectors with l·r = 1."""
    right = modes.vectors[:, 0]
    if of != "eigenvalue":
        return np.zeros((2, len(right))), np.zeros((2, len(right)))
    value, others = modes.values[0], slice(1 if modes.values[0].imag == 0 else 2, None)  # but for its conjugate
    apart = np.abs(modes.values - value) > np.maximum(modes.errors + modes.errors[0], MARGINAL)
    try:
        left = modes.tangent @ np.linalg.inv(modes.tangent.T @ modes.vectors)[0]
    except np.linalg.LinAlgError:
        left = np.full(len(right), np.inf)
    if not apart[others].all() or not np.linalg.norm(left) * np.linalg.norm(right) < 1 / DEFECTIVE:
        raise InputError(
            f"fixed_point has a defective or degenerate leading eigenvalue {value.real:.6g} (times the "
            "fastest rate): expected a simple one, which has derivatives"
        )
    return np.stack([left.real, left.imag]), np.stack([right.real, right.imag])
