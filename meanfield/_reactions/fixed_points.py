"""Fixed points of reaction models, as far as a search finds them, with their leading eigenvalues."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield._fixed_points.spectrum import MARGINAL, stability
from meanfield._population.provenance import stamp
from meanfield._reactions.model import ReactionModel
from meanfield._reactions.roots import ClosedFaces, closed_faces, only_support
from meanfield._reactions.search import MARGINAL_SAME, MAX_PAIRS, SAME, Found, Root, search, tangent_space
from meanfield._reactions.solve import initial_compositions, state_coords
from meanfield.toolbox._arguments import whole_number
from meanfield.toolbox._columns import labelled
from meanfield.toolbox._errors import InputError

SAME_MASS = 1e-9  # rounding


def reaction_fixed_points(
    model: ReactionModel,
    masses: Sequence[float] | np.ndarray | None = None,
    *,
    initial: xr.DataArray | np.ndarray | None = None,
    starts: int = 64,
    seed: int = 0,
    progress: bool = False,
) -> xr.Dataset:
    """The fixed points of a reaction model with given masses of its conserved classes that a search finds.

    The search starts from where solutions of the rate equation come to rest, and from random compositions on the whole
    simplex and on the closed faces that single states open (one state of each class; a face is closed if agents in it
    do not leave it as long as all their partners are in it); then from where solutions end that leave the unstable
    fixed points along their leading mode, and from between what was found. Each start is iterated to a root, where that
    succeeds (see `roots.polish`). This does not prove that there are no others. Where all fixed points must
    lie inside one face their indices sum to 1, a check that attrs["completeness"] reports. Roots are sought in x, since
    given the fields of the model the stationary law of an agent is not unique where some states are never left.

    Of a continuum one point is listed, or several: two are taken for points of one continuum if they have the same
    support, stability and number of zero modes and there is such a point about half way between them.

    Parameters
    ----------
    model
        The reaction model.
    masses
        Shape (C,): the fraction of agents in each class of `model.classes`; they sum to 1. May be left out where there
        is one class or `initial`. `model.class_masses` takes them from a composition.
    initial
        Compositions to start solutions from beside the random ones, as for `solve_reactions`, of these masses.
    starts
        Number of random starts on the whole simplex, ≥ 1; as many are spread over the other closed faces, of which each
        has one more in its middle.
    seed
        Of the random starts.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over `fixed_point`, by falling fractions in the first states, with `composition` (state), `eigenvalue` and
    `eigenvalue_imaginary` of the leading mode among perturbations that keep the mass of each class, per unit of time,
    `stability` (stable, unstable, marginal), `stable`, `zero_modes`, the number of directions in which the linearised
    drift vanishes, `continuum`, whether other fixed points adjoin, and `residual` = max|dx/dt|. Classes without mass
    stay empty: perturbations that put agents there are left out. attrs["completeness"] says what was searched.

    Raises
    ------
    InputError
        If an argument is not as described.
    """
    given = np.empty((0, model.n_states))
    if initial is not None:
        given = initial_compositions(model, initial).values.reshape(-1, model.n_states)
        masses = model.class_masses(given[0]) if masses is None else masses
    mass = _validate_masses(model, masses)
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


def _validate_masses(model: ReactionModel, masses: Sequence[float] | np.ndarray | None) -> np.ndarray:
    if masses is None:
        if model.n_classes > 1:
            raise InputError(f"masses = None: expected the fractions of agents in {model.n_classes} conserved classes")
        return np.ones(1)
    mass = np.asarray(masses, dtype=np.float64)
    if mass.shape != (model.n_classes,):
        raise InputError(f"masses has shape {mass.shape}: expected ({model.n_classes},), one for each conserved class")
    if not (mass >= 0).all() or not abs(mass.sum() - 1) <= SAME_MASS:
        raise InputError(f"masses = {mass}: expected fractions that sum to 1")
    return mass


def _completeness(faces: ClosedFaces, found: Found) -> str:
    which = "all" if faces.complete else "a sample"
    parts = [
        f"not guaranteed; {found.converged} of {found.tried} starts converged",
        f"{len(faces.faces)} closed faces, {which} of those that single states open",
        f"fixed points closer than {SAME:g} count as one, marginal ones closer than {MARGINAL_SAME:g}",
    ]
    if found.cut:
        parts.append(f"others were looked for between {MAX_PAIRS} pairs of them only")
    if found.merged:
        parts.append(f"{found.merged} more points of the continua or beside marginal ones were found, and not listed")
    return "; ".join(parts)


def _index_report(model: ReactionModel, faces: ClosedFaces, roots: list[Root]) -> str:
    """What the sum of the indices says, where all fixed points lie inside one face and the drift points into it."""
    face = only_support(model, faces)
    if face is None:
        return ""
    tangent = tangent_space(model, face)
    spectra = [np.linalg.eigvals(tangent.T @ model.jacobian(root.x) @ tangent) / model.fastest for root in roots]
    if any(np.abs(values).min(initial=1) <= MARGINAL for values in spectra):
        return "; of marginal fixed points the sum of indices says nothing"
    total = sum(int(np.sign(np.prod(-values).real)) for values in spectra)
    return f"; the sum of indices is {total}" + (", as it must be" if total == 1 else " and not 1: some are missing")


def _label(model: ReactionModel, roots: list[Root]) -> xr.Dataset:
    unit = f"1/{model.time_unit}"
    x = np.array([root.x for root in roots]).reshape(-1, model.n_states)
    leading = np.array([root.leading for root in roots], dtype=complex)
    status = np.array([stability(value) for value in leading], dtype=str)
    over = ("fixed_point",)
    columns = {
        "composition": ((*over, "state"), x, "fraction of agents in each state", "1"),
        "eigenvalue": (over, leading.real * model.fastest, "leading eigenvalue, real part", unit),
        "eigenvalue_imaginary": (over, leading.imag * model.fastest, "leading eigenvalue, imaginary part", unit),
        "stability": (over, status, "linear stability", "1"),
        "stable": (over, status == "stable", "leading eigenvalue below zero", "1"),
        "zero_modes": (over, np.array([r.zero_modes for r in roots], int), "directions of vanishing drift", "1"),
        "continuum": (over, np.array([r.continuum for r in roots], bool), "other fixed points adjoin", "1"),
        "residual": (over, np.array([np.abs(model.drift(one)).max() for one in x]), "max |dx/dt|", unit),
    }
    return labelled(columns, coords={**state_coords(model), "fixed_point": np.arange(len(roots))})
