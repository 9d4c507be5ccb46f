"""Roots of the drift of a reaction model on the simplex: closed faces, and Levenberg-Marquardt steps within one.

The support of a fixed point is closed: agents in it stay there as long as all their partners are in it too.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from meanfield._population.reaction_model import ReactionModel

MAX_RESIDUAL = 1e-11  # of max|dx/dt| and of the masses, in units of the fastest rate
MAX_STEPS = 300
PATIENCE = 60  # steps in which the residual must at least be halved
STEP = 1000.0  # h, in units of the fastest rate
MAX_COMBINATIONS = 10_000


class ClosedFaces(NamedTuple):
    """Closed faces that hold all of the given masses: the whole simplex first, then others by falling size.

    `complete` says that the list has the smallest closed face for every choice of one state in each class.
    """

    faces: list[Bool[np.ndarray, " states"]]
    complete: bool


def closed_face(model: ReactionModel, support: Bool[np.ndarray, " states"]) -> Bool[np.ndarray, " states"]:
    """The smallest set of states that holds `support` and is not left when everybody is in it."""
    moves, face = model.moves, support.copy()
    while True:
        active = (moves.fields[:, face] > 0).any(axis=1) | (moves.offset > 0)
        reached = moves.target[active[moves.field] & face[moves.source]]
        if face[reached].all():
            return face
        face[reached] = True


def closed_faces(model: ReactionModel, masses: Float[np.ndarray, " classes"], rng: np.random.Generator) -> ClosedFaces:
    """The closed faces that single states open, one state of each class with a mass; a sample if they are many.

    A class without mass has no agents.
    """
    members = [np.flatnonzero(model.classes == c) for c in np.flatnonzero(masses > 0)]
    complete = np.prod([float(len(states)) for states in members]) <= MAX_COMBINATIONS
    if complete:
        choices = itertools.product(*members)
    else:
        choices = ([rng.choice(states) for states in members] for _ in range(MAX_COMBINATIONS))
    whole = masses[model.classes] > 0
    found = {whole.tobytes(): whole}
    for choice in choices:
        support = np.zeros(model.n_states, bool)
        support[list(choice)] = True
        face = closed_face(model, support)
        found.setdefault(face.tobytes(), face)
    return ClosedFaces(sorted(found.values(), key=lambda face: -int(face.sum())), bool(complete))


def only_support(model: ReactionModel, found: ClosedFaces) -> Bool[np.ndarray, " states"] | None:
    """The face that is the support of every fixed point, or None if there may be several.

    There is one if a smallest closed face lies in all others, has every field that the whole has, and can be reached
    from all other states: those are then transient wherever all these fields act.
    """
    whole, least = found.faces[0], np.logical_and.reduce(found.faces)
    shown = (model.moves.fields[:, least] > 0).any(axis=1)
    if not found.complete or not (closed_face(model, least) == least).all() or not least.any():
        return None
    if (shown != (model.moves.fields[:, whole] > 0).any(axis=1)).any():
        return None
    reaching = least.copy()
    while True:
        sources = model.moves.source[reaching[model.moves.target]]
        if reaching[sources].all():
            return least if reaching[whole].all() else None
        reaching[sources] = True


def on_face(
    model: ReactionModel, masses: np.ndarray, face: Bool[np.ndarray, " states"], weights: np.ndarray
) -> Float[np.ndarray, " states"]:
    """The composition on `face` with these masses, in each class proportional to `weights`."""
    x = np.where(face, weights, 0.0)
    total = model.class_masses(x)
    return x * np.divide(masses, total, out=np.zeros_like(masses), where=total > 0)[model.classes]


def polish(
    model: ReactionModel, masses: Float[np.ndarray, " classes"], x: Float[np.ndarray, " states"]
) -> Float[np.ndarray, " states"] | None:
    """A fixed point with these masses on the closed face of x that the iteration from x finds, or None.

    The iteration brings z(x) - x to zero, with z the composition one long implicit step later, (1 - hG(x)) z = x. It
    has the zeros of the drift and measures fast and slow states alike. Levenberg-Marquardt with a damping proportional
    to the squared residual, projected onto x ≥ 0, converges quadratically to isolated fixed points and also to others,
    at which Newton's step is not unique (Kanzow, Yamashita and Fukushima, J. Comput. Appl. Math. 172, 375 (2004)). It
    may end at a positive minimum of the residual.
    """
    face = closed_face(model, x > 0)
    belongs = (model.classes[None, :] == np.arange(len(masses))[:, None]).astype(float)
    one, damping = np.eye(int(face.sum())), 1.0
    here = _lag(model, masses, np.where(face, x, 0.0), face)
    norms: list[float] = []
    for _ in range(MAX_STEPS):
        norm = float(np.linalg.norm(here.residual))
        stuck = len(norms) >= PATIENCE and norm > norms[-PATIENCE] / 2
        if norm < 1e-15 or damping > 1e12 or stuck:
            break
        norms.append(norm)
        matrix = np.vstack([_lag_derivative(model, here, face), belongs[:, face], damping * norm * one])
        step = np.linalg.lstsq(matrix, np.append(-here.residual, np.zeros(len(one))))[0]
        trial = here.x.copy()
        trial[face] = np.maximum(trial[face] + step, 0)
        there = _lag(model, masses, trial, face)
        if np.linalg.norm(there.residual) < norm:
            here, damping = there, max(damping / 4, 1e-3)
        else:
            damping *= 4
    missed = np.append(model.drift(here.x) / model.fastest, model.class_masses(here.x) - masses)
    return here.x if np.abs(missed).max() <= MAX_RESIDUAL else None


class Lag(NamedTuple):
    """A composition x, the composition `later`, 1 - hG(x) on the face, and (z - x, what the masses miss)."""

    x: Float[np.ndarray, " states"]
    later: Float[np.ndarray, " states"]
    implicit: Float[np.ndarray, "face face"]
    residual: Float[np.ndarray, " equations"]


def _lag(model: ReactionModel, masses: np.ndarray, x: np.ndarray, face: np.ndarray) -> Lag:
    on = np.ix_(face, face)
    implicit = np.eye(int(face.sum())) - STEP / model.fastest * model.generator(x)[on]
    later = np.zeros_like(x)
    later[face] = np.linalg.solve(implicit, x[face])
    return Lag(x, later, implicit, np.append((later - x)[face], model.class_masses(x) - masses))


def _lag_derivative(model: ReactionModel, here: Lag, face: np.ndarray) -> Float[np.ndarray, "face face"]:
    """(1 - hG)⁻¹ (1 + h (∂G/∂x) z) - 1; that of G is what the Jacobian has beyond it."""
    one = np.eye(int(face.sum()))
    through_partners = (model.jacobian(here.later) - model.generator(here.later))[np.ix_(face, face)]
    return np.linalg.solve(here.implicit, one + STEP / model.fastest * through_partners) - one
