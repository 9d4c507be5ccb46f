"""Fixed points of reaction models, as far as a search finds them, with their leading eigenvalues."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from scipy.linalg import null_space
from tqdm.auto import tqdm

from meanfield._errors import InputError
from meanfield._integrate import Tolerances
from meanfield._provenance import stamp
from meanfield._reaction_model import ReactionModel
from meanfield._reaction_model_roots import ClosedFaces, closed_faces, on_face, only_support, polish
from meanfield._reaction_model_solve import courses, state_coords
from meanfield._spectrum import MARGINAL, stability

SAME = 1e-6  # fixed points whose compositions differ by less are one
COURSE_LENGTH = 1000.0  # in units of the fastest rate
MAX_PAIRS = 64  # of fixed points between which others are looked for
# A fixed point belongs to a continuum where another one lies about this far along a direction in which it is marginal.
ASIDE = 1e-2


class Root(NamedTuple):
    """A fixed point, and of its spectrum on the perturbations that keep the masses the leading eigenvalue.

    That is in units of the fastest rate, and -∞ where there is no such perturbation.
    """

    x: Float[np.ndarray, " states"]
    leading: complex
    zero_modes: int
    continuum: bool


def reaction_fixed_points(
    model: ReactionModel,
    masses: Sequence[float] | np.ndarray | None = None,
    *,
    starts: int = 64,
    seed: int = 0,
    progress: bool = False,
) -> xr.Dataset:
    """The fixed points of a reaction model with given masses of its conserved classes that a search finds.

    The search starts from ends of solutions of the rate equation, and from random compositions on the whole simplex and
    on every closed face that single states open (one state of each class; a face is closed if agents in it do not leave
    it as long as all their partners are in it); then between what was found. Each start is iterated to a root, where
    that succeeds (see `_reaction_model_roots`). This does not prove that there are no others. Where all fixed points
    must lie inside one face their indices sum to 1, a check that attrs["completeness"] reports. Roots are sought in x
    and not in the fields of the model, since given the fields the stationary law of an agent is not unique where some
    states are never left.

    Where a fixed point is one of a continuum, one is listed for each support, number of zero modes and stability.

    Parameters
    ----------
    model
        The reaction model.
    masses
        Shape (C,): the fraction of agents in each class of `model.classes`; they sum to 1. May be left out where there
        is one class. `model.class_masses` takes them from a composition.
    starts
        Number of random starts on the whole simplex, ≥ 1; about as many are spread over the other closed faces.
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
    mass = _validate_masses(model, masses)
    if isinstance(starts, bool) or not isinstance(starts, (int, np.integer)) or starts < 1:
        raise InputError(f"starts = {starts}: expected an integer from 1 on")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(f"seed = {seed}: expected an integer from 0 on")
    rng = np.random.default_rng(seed)
    faces = closed_faces(model, mass, rng)
    first = list(_starts(model, mass, faces, starts, rng))
    found, converged = _polished(model, mass, first, [], progress)
    roots = _distinct(model, mass, found, [])
    between = list(_between(roots))
    more, converged_too = _polished(model, mass, between, found, progress)
    roots = _distinct(model, mass, more, roots)
    roots.sort(key=lambda root: tuple(-np.round(root.x, 9)))
    tried = f"{converged + converged_too} of {len(first) + len(between)} starts converged"
    merged = len(found) + len(more) - len(roots)
    report = _completeness(faces, tried, merged) + _index_report(model, faces, roots)
    labelled = _label(model, roots).assign_attrs(completeness=report)
    return stamp(labelled, "reaction_fixed_points", starts=starts, seed=seed)


def _validate_masses(model: ReactionModel, masses: Sequence[float] | np.ndarray | None) -> np.ndarray:
    if masses is None:
        if model.n_classes > 1:
            raise InputError(f"masses = None: expected the fractions of agents in {model.n_classes} conserved classes")
        return np.ones(1)
    mass = np.asarray(masses, dtype=np.float64)
    if mass.shape != (model.n_classes,):
        raise InputError(f"masses has shape {mass.shape}: expected ({model.n_classes},), one for each conserved class")
    if not (mass >= 0).all() or not abs(mass.sum() - 1) <= 1e-9:
        raise InputError(f"masses = {mass}: expected fractions that sum to 1")
    return mass


def _starts(
    model: ReactionModel, mass: np.ndarray, faces: ClosedFaces, number: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Ends of solutions first, so that of a continuum a point is listed that solutions reach."""
    whole, *others = faces.faces
    centre = on_face(model, mass, whole, np.ones(model.n_states))
    spread = [on_face(model, mass, whole, _weights(model, rng)) for _ in range(number)]
    first = np.array([centre, *spread[:15]])
    ends, _ = courses(model, first, np.array([COURSE_LENGTH / model.fastest]), Tolerances(1e-8, 1e-11))
    for end in np.asarray(ends)[:, -1]:
        # The solver leaves less than its tolerance in states that have emptied; small classes have small fractions.
        yield on_face(model, mass, whole, np.where(end > SAME * mass[model.classes], end, 0.0))
    yield from (centre, *spread)
    for face in others:
        yield on_face(model, mass, face, np.ones(model.n_states))
        for _ in range(number // len(others) if face.sum() > np.count_nonzero(mass) else 0):
            yield on_face(model, mass, face, _weights(model, rng))


def _between(roots: list[Root]) -> Iterator[np.ndarray]:
    """Between fixed points there may be a saddle; between two points of continua are mostly more of these."""
    pairs = ((one, other) for one, other in itertools.combinations(roots, 2) if not one.continuum & other.continuum)
    for one, other in itertools.islice(pairs, MAX_PAIRS):
        yield from (one.x + part * (other.x - one.x) for part in (0.25, 0.5, 0.75))


def _polished(
    model: ReactionModel, mass: np.ndarray, starts: list[np.ndarray], known: list[np.ndarray], progress: bool
) -> tuple[list[np.ndarray], int]:
    """The different fixed points beside those `known` that starts lead to, and how many starts lead to any."""
    found, converged = [], 0
    for start in tqdm(starts, disable=not progress, unit="start", leave=False):
        x = polish(model, mass, start)
        if x is not None:
            converged += 1
            if all(np.abs(x - other).max() > SAME for other in known + found):
                found.append(x)
    return found, converged


def _weights(model: ReactionModel, rng: np.random.Generator) -> np.ndarray:
    """Positive, and so uneven that starts near all faces occur."""
    return rng.gamma(0.5, size=model.n_states) + 1e-12


def _distinct(model: ReactionModel, mass: np.ndarray, found: list[np.ndarray], roots: list[Root]) -> list[Root]:
    """`roots` and what of `found` adds to them: isolated fixed points, and one for each kind of continuum."""
    listed = list(roots)
    kinds = {_kind(root) for root in roots if root.continuum}
    for x in found:
        root, sides = _root(model, mass, x)
        if _kind(root) in kinds:
            continue
        if any(_aside(model, mass, x, side) for side in sides):
            root = root._replace(continuum=True)
            kinds.add(_kind(root))
        listed.append(root)
    return listed


def _kind(root: Root) -> tuple:
    return (root.x > SAME).tobytes(), root.zero_modes, stability(root.leading)


def _root(model: ReactionModel, mass: np.ndarray, x: np.ndarray) -> tuple[Root, list[np.ndarray]]:
    """The spectrum at x, and both senses of the directions in which x is marginal."""
    tangent = _tangent(model, mass[model.classes] > 0)
    reduced = tangent.T @ model.jacobian(x) @ tangent / model.fastest
    values = np.linalg.eigvals(reduced)
    leading = complex(values[np.lexsort((-values.imag, -values.real))][0]) if values.size else complex(-np.inf)
    flat = null_space(reduced, rcond=MARGINAL) if reduced.size else np.empty((0, 0))
    if np.abs(reduced).max(initial=0) <= MARGINAL:
        flat = np.eye(len(reduced))
    return Root(x, leading, flat.shape[1], False), [sign * tangent @ v for v in flat.T for sign in (1, -1)]


def _tangent(model: ReactionModel, face: Bool[np.ndarray, " states"]) -> Float[np.ndarray, "states directions"]:
    """An orthonormal basis of the perturbations on a face that keep the mass of each class."""
    blocks = []
    for c in np.unique(model.classes[face]):
        members = np.flatnonzero(face & (model.classes == c))
        block = np.zeros((model.n_states, len(members) - 1))
        block[members] = null_space(np.ones((1, len(members))))
        blocks.append(block)
    return np.hstack(blocks)


def _aside(model: ReactionModel, mass: np.ndarray, x: np.ndarray, side: np.ndarray) -> bool:
    """Whether another fixed point lies that way."""
    start = np.maximum(x + ASIDE * side / np.abs(side).max(), 0)
    other = polish(model, mass, on_face(model, mass, start > 0, start))
    return other is not None and bool(np.abs(other - x).max() > ASIDE / 10)


def _completeness(faces: ClosedFaces, tried: str, merged: int) -> str:
    which = "all" if faces.complete else "a sample"
    parts = [
        f"not guaranteed; {tried}",
        f"{len(faces.faces)} closed faces, {which} of those that single states open",
        f"fixed points closer than {SAME:g} count as one",
    ]
    if merged:
        parts.append(f"{merged} more points of continua were found and are not listed")
    return "; ".join(parts)


def _index_report(model: ReactionModel, faces: ClosedFaces, roots: list[Root]) -> str:
    """What the sum of the indices says, where all fixed points lie inside one face and the drift points into it."""
    face = only_support(model, faces)
    if face is None:
        return ""
    tangent = _tangent(model, face)
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
    data = {
        name: (dims, values, {"long_name": label, "units": units})
        for name, (dims, values, label, units) in columns.items()
    }
    return xr.Dataset(data, coords={**state_coords(model), "fixed_point": np.arange(len(roots))})
