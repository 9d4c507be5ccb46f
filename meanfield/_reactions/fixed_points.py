"""Fixed points of reaction models, as far as a search finds them, with their leading eigenvalues."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield._numerics.stability import MARGINAL, stability_columns
from meanfield._population.provenance import stamp
from meanfield._population.reaction_model import ReactionModel
from meanfield._reactions.modes import modes_at
from meanfield._reactions.roots import ClosedFaces, closed_faces, only_support
from meanfield._reactions.search import MARGINAL_SAME, MAX_PAIRS, SAME, Found, Root, search
from meanfield._reactions.solve import initial_compositions, state_coords
from meanfield.toolbox._arguments import whole_number
from meanfield.toolbox._columns import labelled
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._labels import real_numbers

SAME_MASS = 1e-9  # rounding


def reaction_fixed_points(
    model: ReactionModel,
    masses: Sequence[float] | np.ndarray | None = None,
    initial: xr.DataArray | np.ndarray | None = None,
    starts: int = 64,
    seed: int = 0,
    progress: bool = False,
) -> xr.Dataset:
    """The result of `fixed_points` for a reaction model.

    Roots are sought in x: for given fields the stationary distribution of an agent is not unique if some states are
    never left.
    """
    given = np.empty((0, model.n_states))
    if initial is not None:
        given = initial_compositions(model, initial).values.reshape(-1, model.n_states)
        masses = model.class_masses(given[0]) if masses is None else masses
    mass = validated_masses(model, masses)
    for x in given:
        if np.abs(model.class_masses(x) - mass).max() > SAME_MASS:
            raise InputError(f"initial has the class masses {model.class_masses(x)}: expected {mass}")
    starts, seed = whole_number("starts", starts, 1), whole_number("seed", seed)
    rng = np.random.default_rng(seed)
    faces = closed_faces(model, mass, rng)
    found = search(model, mass, faces, given, starts, rng, progress)
    roots = sorted(found.roots, key=lambda root: tuple(-np.round(root.x, 9)))
    report = _completeness(faces, found) + _index_report(model, faces, roots)
    return stamp(
        _label(model, roots).assign_attrs(completeness=report), "reaction_fixed_points", starts=starts, seed=seed
    )


def validated_masses(model: ReactionModel, masses: Sequence[float] | np.ndarray | None) -> np.ndarray:
    """The fractions of agents in the conserved classes, as an array; InputError unless they are fractions."""
    if masses is None:
        if model.n_classes > 1:
            raise InputError(f"masses = None: expected the fractions of agents in {model.n_classes} conserved classes")
        return np.ones(1)
    mass = real_numbers(masses, "masses")
    if mass.shape != (model.n_classes,):
        raise InputError(f"masses has shape {mass.shape}: expected ({model.n_classes},), one for each conserved class")
    if not (mass >= 0).all() or not abs(mass.sum() - 1) <= SAME_MASS:
        raise InputError(f"masses = {mass} sum to {mass.sum():.12g}: expected fractions of at least 0 that sum to 1")
    return mass


def _completeness(faces: ClosedFaces, found: Found) -> str:
    which = "all" if faces.complete else "a sample"
    parts = [
        f"Not guaranteed to be all: {found.converged} of {found.tried} starts converged to fixed points.",
        f"The search covered {len(faces.faces)} closed faces, {which} of those that single states open.",
        f"Fixed points closer than {SAME:g} count as one, marginal ones closer than {MARGINAL_SAME:g}.",
    ]
    if found.cut:
        parts.append(f"Others were looked for between {MAX_PAIRS} pairs of them only.")
    if found.merged:
        parts.append(f"{found.merged} more points of the continua or beside marginal ones were found, and not listed.")
    return " ".join(parts)


def _index_report(model: ReactionModel, faces: ClosedFaces, roots: list[Root]) -> str:
    """The sum of the indices, if all fixed points lie inside one face and the drift points into it; else ''."""
    face = only_support(model, faces)
    if face is None:
        return ""
    spectra = [modes_at(model, root.x, face).values for root in roots]
    if any(np.abs(values).min(initial=1) <= MARGINAL for values in spectra):
        return " Of marginal fixed points the sum of indices says nothing."
    total = sum(int(np.sign(np.prod(-values / np.abs(values)).real)) for values in spectra)
    return f" The sum of their indices is {total}" + (
        ", as it must be if none is missing." if total == 1 else " and not 1: some are missing."
    )


def _label(model: ReactionModel, roots: list[Root]) -> xr.Dataset:
    unit = f"1/{model.time_unit}"
    x = np.array([root.x for root in roots]).reshape(-1, model.n_states)
    leading = np.array([root.leading for root in roots], dtype=complex)
    error = np.array([root.error for root in roots], dtype=float)
    over = ("fixed_point",)
    columns = {
        "composition": ((*over, "state"), x, "fraction of agents in each state", "1"),
        **stability_columns(over, leading, error, unit, scale=model.fastest),
        "zero_modes": (over, np.array([r.zero_modes for r in roots], int), "directions of vanishing drift", "1"),
        "continuum": (over, np.array([r.continuum for r in roots], bool), "other fixed points adjoin", "1"),
        "residual": (over, np.array([np.abs(model.drift(one)).max() for one in x]), "max |dx/dt|", unit),
    }
    return labelled(columns, coords={**state_coords(model), "fixed_point": np.arange(len(roots))})
