"""Roots of the drift of a reaction model on the simplex: closed faces, and Levenberg-Marquardt steps within one.

The support of a fixed point is closed: agents in it stay there as long as all their partners are in it too.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.optimize import leastsq

from meanfield._population.reaction_model import ReactionModel

MAX_RESIDUAL = 1e-12  # |dx/dt| of each state against what it gains and loses, and of the masses
MAX_STEPS, LOOK = 100, 25  # and after how many it is looked whether states have emptied
FAR = 1e9  # fractions
STEP = 1000.0  # h, in units of the fastest rate
SMALL = 1e-6  # fraction of a class that may be none
EPS = np.finfo(float).eps
TINY = np.finfo(float).tiny / EPS  # flux
MAX_COMBINATIONS = 10_000


class ClosedFaces(NamedTuple):
    """Closed faces that hold all of the given masses: the whole simplex first, then others by decreasing size.

    `complete` says that the list has the smallest closed face for every choice of one state in each class.
    """

    faces: list[Bool[np.ndarray, " states"]]
    complete: bool


def closed_face(model: ReactionModel, support: Bool[np.ndarray, " states"]) -> Bool[np.ndarray, " states"]:
    """The smallest set of states that holds `support` and is not left when everybody is in it."""
    moves, face = model.moves, support.copy()
    while True:
        reached = moves.target[_acting(model, face)[moves.field] & face[moves.source]]
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
    from all other states: those are then transient wherever all these fields act. A rate that is a function may vanish
    anywhere, so that there is none to tell.
    """
    whole, least = found.faces[0], np.logical_and.reduce(found.faces)
    if len(model.changes) or not found.complete or not (closed_face(model, least) == least).all() or not least.any():
        return None
    if (_acting(model, least) != _acting(model, whole)).any():
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
    """A fixed point with these masses on the closed face of x, or on a smaller one, to which x leads, or None.

    MINPACK's Levenberg-Marquardt steps bring z(x) - x to zero, with z the composition one long implicit step later,
    (1 - hG(x)) z = x. It has the zeros of the drift and measures fast and slow states alike. The unknowns are the
    square roots of the fractions, which so stay positive. Newton steps relative to each fraction follow, or begin anew
    if that fails. If nothing balances, states that have all but emptied are left out where others do not need them.
    """
    face = closed_face(model, x > 0)
    on, one, h = np.ix_(face, face), np.eye(int(face.sum())), STEP / model.fastest
    belongs = _belongs(model, masses)[:, face]

    def whole(values: np.ndarray) -> np.ndarray:
        filled = np.zeros(model.n_states)
        filled[face] = values
        return filled

    @lru_cache(maxsize=1)  # MINPACK asks for the residual and then for its derivative
    def later(root: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x = np.frombuffer(root) ** 2
        implicit = one - h * model.generator(whole(x))[on]
        return x, np.linalg.solve(implicit, x), implicit

    def missed(root: np.ndarray) -> np.ndarray:
        try:
            x, z, _ = later(root.tobytes())
        except np.linalg.LinAlgError:  # far from all compositions, where rates may be negative: a step not to take
            x, z = root**2, np.full(len(root), FAR)
        return np.append(z - x, belongs @ x - masses)

    def derivative(root: np.ndarray) -> np.ndarray:
        x, z, implicit = later(root.tobytes())
        through_partners = model.through_partners(whole(x), whole(z))[on]
        return np.vstack([np.linalg.solve(implicit, one + h * through_partners) - one, belongs]) * 2 * root

    start = np.sqrt(np.abs(later(np.sqrt(x[face]).tobytes())[1]))  # which is positive
    options = {"xtol": EPS, "ftol": EPS, "gtol": EPS, "maxfev": MAX_STEPS, "diag": one.diagonal(), "full_output": True}
    for root in (leastsq(missed, start, Dfun=derivative, **options)[0], start):
        x, left = _refined(model, masses, whole(root**2))
        if left <= MAX_RESIDUAL:
            return x
    smaller = _left_over(model, masses, x)
    return None if smaller.sum() == face.sum() else polish(model, masses, on_face(model, masses, smaller, x))


def _refined(model: ReactionModel, masses: np.ndarray, x: np.ndarray) -> tuple[Float[np.ndarray, " states"], float]:
    """x after Newton steps in ln x, and there max |dx/dt| / (gain + loss), or what the masses miss.

    They end where states have all but emptied that others do not need.
    """
    belongs, occupied = _belongs(model, masses), np.count_nonzero(x)
    best, left = x, np.inf
    for n in range(1, MAX_STEPS + 1):
        gained, lost = model.fluxes(x)
        scale = np.where(gained + lost > TINY, gained + lost, 1)
        missed = np.append((lost - gained) / scale, masses - belongs @ x)
        most = float(np.abs(missed).max())
        if left <= MAX_RESIDUAL and most >= left:
            break
        best, left = x, most
        if n % LOOK == 0 and most > MAX_RESIDUAL and _left_over(model, masses, x).sum() < occupied:
            break
        matrix = np.vstack([model.jacobian(x) * x / scale[:, None], belongs * x])
        x = x * np.exp(np.clip(np.linalg.lstsq(matrix, missed)[0], -1, 1))
    return best, left


def _left_over(model: ReactionModel, masses: np.ndarray, x: np.ndarray) -> Bool[np.ndarray, " states"]:
    """The closed face without states that have all but emptied."""
    return closed_face(model, x > SMALL * masses[model.classes])


def _belongs(model: ReactionModel, masses: np.ndarray) -> Float[np.ndarray, "classes states"]:
    return (model.classes == np.arange(len(masses))[:, None]).astype(float)


def _acting(model: ReactionModel, face: Bool[np.ndarray, " states"]) -> Bool[np.ndarray, " fields"]:
    """Whether each field is positive at some composition of the states of a face."""
    moves = model.moves
    constant = (moves.fields[:, face] > 0).any(axis=1) | (moves.offset > 0)
    return np.append(constant, model.changes.acting(face))
